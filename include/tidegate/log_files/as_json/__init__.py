"""Columns of Arrow as JSON values, one text per row.

In:  a column of decoded values and what the server says of its type.
Out: large_string arrays of JSON.
"""
