"""The reaction of silver to a new version of a table.

In:  versions.
Out: changes of silver's columns and rows, kinds of change for the DDL policy.
"""
