"""Columns of Arrow as JSON values, one text per row.

In:  a column of decoded values, and its type at the server.
Out: large_string arrays of JSON.
"""
