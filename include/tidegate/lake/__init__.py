"""The lake: Delta tables by delta-rs, without Spark or a JVM.

In:  rows of the tables in tables.py, a lake's path and its storage options.
Out: commits, each exactly once; what was committed, read back.
"""
