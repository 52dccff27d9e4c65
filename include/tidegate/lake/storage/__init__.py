"""The storage of a lake: a disk, or an object store.

In:  a lake's path, the options of its store.
Out: storage_options.py: the same options for delta-rs and for Spark. store_files.py: a store's files, as pyarrow opens
     them. lake/files.py uses both.
"""
