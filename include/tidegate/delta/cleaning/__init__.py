"""Objects that a table needs no more go: old commits and checkpoints, files that no version names.

In:  a DeltaLog.
Out: a checkpoint, removed objects. No commit is made.
"""
