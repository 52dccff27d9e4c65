"""The lake: the meaning of its Delta tables, without Spark or a JVM; their logs: tidegate/delta.

In:  rows of the tables in tables/, a lake's path and its storage options.
Out: commits, each exactly once; committed rows, read back.

files.py opens a lake, and nearly everybody begins there. storage/ has its files on any store, format/ the releases
that may read it, control/ the rows of its control tables. Above them a room for each idea: schema_history/, standing/,
people/, bronze/, cuts/, silver/. figures/, jobs/ and rebuild/ use all of these.
"""
