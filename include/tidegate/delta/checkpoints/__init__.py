"""Checkpoints of a Delta log (PROTOCOL.md, "Checkpoints"): read of every kind, written of one.

In:  a log's store.
Out: the actions that a checkpoint stands for; checkpoints that every reader takes.
"""
