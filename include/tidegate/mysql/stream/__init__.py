"""A server's replication stream: packets, events, segments.

In:  a dump request, the checkpoint that the first segment must continue.
Out: Segments in order; no work per row, compiled code per event. place.py: where capture stands in the log.
     source_clock.py: the moment that no transaction is dated after.
"""
