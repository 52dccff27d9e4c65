"""Copies of a lake, usable as lakes again: backup while everything works, restore, move.

In:  a lake, and another folder or object store path.
Out: the same tables there, at versions of one moment; a paper with these versions and the kind of
     the copy.
"""
