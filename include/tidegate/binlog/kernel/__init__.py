"""Compiled kernels for binlog events: their index, their rows, their compression.

In:  raw events, by address. Out: records of events, and rows in Arrow buffers. As in columnar/kernel, lengths are
checked before use, and errors are numbers here; batch.py and event_index.py make messages of them.
"""
