"""DDL text as data.

In:  a statement as the log carries it (statement.py).
Out: a tree of frozen values (tree.py), independent of existing tables.
"""
