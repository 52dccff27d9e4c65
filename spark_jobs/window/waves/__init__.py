"""Snapshots, as apply meets them: waves, the tables that they begin, and shards that lack rows.

In:  marks in a window's log, bronze/chunks, control/snapshots.
Out: what a window takes of waves, and answers to their readers.

The way of a wave: news (it ended in this window), verdicts (whether a table can take its share, decided before anything
changes), then apply_steps/resolve_watermarks.py does what the verdict says; snapshots keeps the tables that it begins.
"""
