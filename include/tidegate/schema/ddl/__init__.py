"""DDL text as data.

In:  a statement from the log (statement.py).
Out: a tree of frozen values (tree.py). It doesn't depend on existing tables.
"""
