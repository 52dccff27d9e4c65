"""Deletion vectors: which rows of a file are dead, as Delta's log and its files say it.

In:  positions of rows.
Out: bytes, inline or in a file, and back.
"""
