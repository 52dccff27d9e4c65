"""Values of TiDB's columns: as text, and those that no row has (of virtual columns, of rows older than a column).

In:  a row's cells, a table's definition.
Out: cells. UnsupportedValue where an expression isn't known here.
"""
