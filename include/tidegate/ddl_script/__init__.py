"""DDL scripts: what `tidegate ddl` prints, and the schema of `tidegate decode --schema`.

In:  a script as a person or a dump tool wrote it.
Out: the tables after each statement (script.py), as the server itself would show them (shown_columns.py).
"""
