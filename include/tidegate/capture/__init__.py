"""Capture: from a source to bronze, exactly once.

In:  segments of a source; where bronze ends.
Out: the same segments. They are first durable on this machine's disk (the value log); then the
     lander appends them to bronze.

Every segment lands once, in order, or capture stops with a reason. Nothing here works row by row.
"""
