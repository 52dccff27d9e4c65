"""Rows that come to another table without row events: renames and partitions.

In:  versions.
Out: which table's rows they were, and the condition that is true of exactly those rows.
"""
