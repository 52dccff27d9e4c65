"""bronze/segments: appended to by capture, read by apply, packed and forgotten by maintain.

In:  segments of any kind of source (tidegate/segments).
Out: table.py: the writer; log.py, file.py: its Delta log and its Parquet files; index.py, backlog.py: the segments,
     and their bytes; lookback.py: the earlier segments with rows of a later one; captured_places.py: the commit_ts of
     a place in a server's log; prewrites.py: the transactions that wait for their answer (control/prewrites);
     checkpoints.py, upkeep.py, retention.py: its upkeep.
"""
