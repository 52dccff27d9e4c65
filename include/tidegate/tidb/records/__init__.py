"""The records of a Pump: prewrites and their answers, each by itself and paired.

In:  payloads of WriteBinlog, words of TiDB's MVCC.
Out: Binlogs; committed transactions in order of commit_ts, and resolved_ts.
"""
