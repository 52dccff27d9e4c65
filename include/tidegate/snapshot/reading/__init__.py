"""Reading a table's rows from a server by SELECT, columnar from the socket on.

In:  a table version, a connection, a range of keys.
Out: record batches of exactly the binlog's values; keys as literals.
"""
