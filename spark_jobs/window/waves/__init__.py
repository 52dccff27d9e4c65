"""Snapshots, as apply meets them: waves, the tables that they begin, and shards that lack rows.

In:  marks in a window's log, bronze/chunks, control/snapshots.
Out: what a window takes of waves, and answers to their readers.
"""
