"""Checkpoints of a Delta log (PROTOCOL.md, "Checkpoints"): it reads every kind, and writes one.

In:  a log's store.
Out: the actions in a checkpoint; a checkpoint every reader takes.
"""
