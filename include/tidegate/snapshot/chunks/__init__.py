"""Chunks: rows of a range of a table's key, and their place in bronze.

In:  tables with a key; a reader's rows.
Out: Spans; rows of bronze/chunks; chunks, as apply and a rebuild read them. Knows no server.
"""
