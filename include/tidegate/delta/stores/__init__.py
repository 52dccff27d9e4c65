"""Folders of small objects in which a name is made at most once: on a disk, or in a bucket.

In:  a path or URL, the store's options.
Out: LogStore.
"""
