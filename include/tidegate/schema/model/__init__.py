"""The model of a table: versions, columns, types, character sets, partitions.

In:  nothing but values; rows of control/schema_history.
Out: TableVersion (columns.py) and the canonical Arrow type of each column (types.py).
"""
