"""bronze/segments: appended to by capture, read by apply, packed and forgotten by maintain.

In:  segments of any kind of source (tidegate/segments).
Out: table.py: the one who appends; log.py, file.py: its Delta log and its Parquet files; index.py, backlog.py: which
     segments there are, and their bytes; lookback.py: which of them
     rows of a later one may lie in; checkpoints.py, upkeep.py, retention.py: what keeps it small.
"""
