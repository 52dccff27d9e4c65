"""Tables in memory, replayed from a recorded stream of TiDB's binlogs: the tests' second opinion on each row.

In:  a folder with binlog.bin (each WriteBinlog payload in order of arrival, after its length: 8 bytes, little-endian)
     and ddl_jobs.jsonl (`job_meta` of mysql.tidb_ddl_history, a line per job); optional index.jsonl (the `pump` of
     each payload) and manifest.json (the answers of TiDB's MVCC about `orphans`, and `checkpoints`).
Out: every table as SELECT shows it at a TSO. UnsupportedValue where what TiDB did to existing rows can't be told.
     `python -m tests.kit.tidb.replay DIR` prints it (command.py).
"""
