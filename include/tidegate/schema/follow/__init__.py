"""What silver does when a table's version changes.

In:  versions.
Out: changes of silver's columns and rows, kinds of change for the DDL policy.
"""
