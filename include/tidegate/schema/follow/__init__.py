"""The meaning of a new version of a table for silver.

In:  versions.
Out: changes of silver's columns and rows; kinds of change for the DDL policy.
"""
