"""A segment's events, laid out in an index, and what became of each transaction.

In:  a segment.
Out: EventIndex: where each event is, its transaction's commit_ts, whether it was rolled back; the fate of each byte.
"""
