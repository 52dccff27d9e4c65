"""What a table needs no more: old commits and checkpoints, files that no version names.

In:  a DeltaLog.
Out: a checkpoint, removed objects. No commit is made.
"""
