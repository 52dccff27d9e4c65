"""Keys of a phase: a staged file's changes, and the rows of silver's files with these keys.

In:  changes of a phase; live files of silver.
Out: hashes and leads of keys, key files, a table of keys to probe with, the key columns of a data
     file.
"""
