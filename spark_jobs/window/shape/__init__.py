"""The shapes of a window's tables, and the moves of rows between them.

In:  schema histories, a table's share of a window.
Out: shapes of silver tables, moves between tables, the input of decoding.
"""
