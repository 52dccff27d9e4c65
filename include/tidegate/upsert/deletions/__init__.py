"""Deletion vectors: the dead rows of a file, in the form of Delta's log and files.

In:  positions of rows.
Out: bytes, inline or in a file, and back.
"""
