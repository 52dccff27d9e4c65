"""From statements to versions of tables.

In:  trees of statements, and what is known of the tables before them.
Out: new TableVersions (history.py).
"""
