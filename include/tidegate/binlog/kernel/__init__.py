"""Compiled kernels that know binlog events: their index, their rows, their compression.

In:  raw events at addresses. Out: records of events, and rows in Arrow buffers. As in columnar/kernel: lengths are
checked before use, errors are numbers here and sentences in batch.py and event_index.py.
"""
