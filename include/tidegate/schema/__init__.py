"""Schema history: which columns a physical table had at a commit_ts.

In:  a baseline read from the server, and every DDL from the binlog.
Out: TableVersion values (columns.py), and the canonical Arrow type of each column (types.py).
"""
