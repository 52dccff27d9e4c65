"""Binlog files at hand, without a lake or schema_history: what `tidegate decode` prints.

In:  files of any server, and perhaps a DDL script.
Out: NDJSON lines and statistics, made with the index, plans and kernels of apply.
"""
