"""What a window's tables look like, and which of them rows move between.

In:  schema histories, a table's share of a window.
Out: shapes of silver tables, moves between tables, what decoding is given.
"""
