"""Checkpoints of a Delta log (PROTOCOL.md, "Checkpoints"): read of every kind, written of one.

In:  a log's store.
Out: the actions after a checkpoint; checkpoints for every reader.
"""
