"""Chunks: which range of a table's key is read at once, what was read of it, and where that lies in bronze.

In:  tables with a key; rows that a reader read.
Out: Spans; rows of bronze/chunks; chunks, as apply and a rebuild read them. Knows no server.
"""
