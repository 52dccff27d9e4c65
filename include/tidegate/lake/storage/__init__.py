"""The storage of a lake: a disk, or an object store.

In:  a lake's path, the options of its store.
Out: storage_options.py: the options for delta-rs and for Spark. store_files.py: a store's files for
     pyarrow. store_error.py: the errors of a store. lake/files.py uses them.
"""
