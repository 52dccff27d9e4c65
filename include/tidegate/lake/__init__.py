"""The lake: the meaning of its Delta tables, without Spark or a JVM; their logs: tidegate/delta.

In:  rows of the tables in tables/, a lake's path and its storage options.
Out: commits, each exactly once; committed rows, read back.

Begin with files.py: it opens a lake. storage/ has its files on any store. format/ says which
releases may read it. control/ has the rows of its control tables. Above them is a room for each
idea: schema_history/, standing/, people/, bronze/, cuts/, silver/. figures/, jobs/ and rebuild/ use
all of these.
"""
