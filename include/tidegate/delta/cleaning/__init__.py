"""Objects a table no longer needs go: old commits and checkpoints, files no version names.

In:  a DeltaLog.
Out: a checkpoint, removed objects. No commit is made.
"""
