"""The value log: segments on this machine's disk, synced before anything else hears of them.

In:  segments in order of seq.
Out: files of checksummed records, read again after a kill; records in bronze are deleted.
"""
