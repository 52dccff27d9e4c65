"""The lake: what its Delta tables mean, without Spark or a JVM; their logs are tidegate/delta's.

In:  rows of the tables in tables.py, a lake's path and its storage options.
Out: commits, each exactly once; what was committed, read back.
"""
