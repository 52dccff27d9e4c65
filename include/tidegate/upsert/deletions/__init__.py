"""Deletion vectors: the dead rows of a file, as Delta's log and its files say it.

In:  positions of rows.
Out: bytes, inline or in a file, and back.
"""
