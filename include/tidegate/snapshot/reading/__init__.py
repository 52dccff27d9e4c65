"""Reading a table's rows from a server by SELECT, columnar from the socket on.

In:  a table version, a connection, a range of keys.
Out: record batches of exactly the values that the binlog would have given; keys as literals.
"""
