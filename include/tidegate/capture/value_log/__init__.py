"""The value log: segments on this machine's disk, synced before any other code sees them.

In:  segments in order of seq.
Out: files of checksummed records, which are read again after a kill. Records that bronze has are
     deleted.
"""
