"""A segment's events in an index, and the outcome of each transaction.

In:  a segment.
Out: EventIndex: the place of each event, its transaction's commit_ts, whether it was rolled back.
     The fate of each byte.
"""
