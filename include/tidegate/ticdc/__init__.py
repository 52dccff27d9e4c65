"""A TiCDC changefeed's files on a storage path: from bytes to DDL statements and typed columns.

In:  segments of kind ticdc: whole lines of data files, and whole schema files, unchanged.
Out: statements for schema_history; changes per table. Nothing here reads a store: changefeed/ does.
"""
