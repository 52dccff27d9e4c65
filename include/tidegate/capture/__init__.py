"""Capture: from a source's replication stream to bronze, exactly once.

In:  raw events from wire, where bronze ends.
Out: segments, first safe on this machine's disk (value log), then appended to bronze by the lander.

Every byte of the binlog lands once, in order, or capture stops with a reason. No work per row.
"""
