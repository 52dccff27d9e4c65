"""Capture: from a source to bronze, exactly once.

In:  segments of a source, where bronze ends.
Out: the same segments, first safe on this machine's disk (value log), then appended to bronze by the lander.

Every segment lands once, in order, or capture stops with a reason. No work per row.
"""
