"""Rows logged before their transaction is committed: XA branches, and TiDB's prewrites.

In:  prewrites and answers of a window's segments, control/prewrites.
Out: the segments whose rows the window commits, with the commit_ts of each answer.
"""
