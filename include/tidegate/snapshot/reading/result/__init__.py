"""A SELECT's result, walked as it comes from the socket, into columns.

In:  a table version; packets of the server's text protocol.
Out: record batches of exactly the binlog's values.
"""
