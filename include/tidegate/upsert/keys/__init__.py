"""Keys of a phase: what a staged file changes, and which rows of silver's files have these keys.

In:  changes of a phase; live files of silver.
Out: hashes and leads of keys, key files, a table of keys to probe with, the key columns of a data file.
"""
