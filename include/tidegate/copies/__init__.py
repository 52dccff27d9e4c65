"""Copies of a lake that are lakes again: backup while everything works, restore, move.

In:  a lake, and another folder or object store path.
Out: the same tables there, at versions that belong together; a paper that says which, and what the copy is.
"""
