"""The lake: the meaning of its Delta tables, without Spark or a JVM; their logs: tidegate/delta.

In:  rows of the tables in tables/, a lake's path and its storage options.
Out: commits, each exactly once; committed rows, read back.
"""
