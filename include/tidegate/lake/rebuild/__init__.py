"""A silver table made anew from bronze alone.

In:  a lake, a table, a moment.
Out: rebuild_lake.py: a lake over the same bronze, in which apply's steps write the table. rebuilt_parents.py: the
     tables its foreign keys need. swap.py: the new table replaces the live one.
"""
