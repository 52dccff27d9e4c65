"""Snapshots, as apply meets them: waves, the tables begun by them, and shards lacking rows.

In:  marks in a window's log, bronze/chunks, control/snapshots.
Out: a window's share of waves, and answers to their readers.

The way of a wave: news (it ended in this window), verdicts (whether a table can take its share,
decided before anything changes), then apply_steps/resolve_watermarks.py obeys the verdict;
snapshots keeps the tables it begins.
"""
