"""Actions of people on tables and their snapshots, wherever they act: by a command, or on the page in Airflow.

In:  a pipeline and its lake; a Place to act from: connections, and the Author.
Out: the same change of the lake, one line about it, and a record in control/actions (lake/people/audit.py).
"""
