"""A server's own word on itself, as values. No rule judges here: demands/ does.

In:  an open connection or a cursor.
Out: server_facts.py: settings, versions, grants. cluster.py, managed.py: its cluster, and the service that runs it.
     tables_there.py, unlogged_columns.py: its tables, and the columns that its log lacks. branches.py, visible.py,
     branches_beside.py: its prepared transactions, and the part of its log that a read sees.
"""
