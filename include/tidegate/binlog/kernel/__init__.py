"""Compiled kernels: raw events in, Arrow buffers out.

In:  bytes as uint8 arrays, plans as int64 arrays. Out: bytes in one arena, counters and error codes in int64 arrays.
What must hold: every length read from the data is checked against its event's end before it is used; every write goes
to room that was sized for it. Errors are numbers here and become sentences in decode.py.
"""
