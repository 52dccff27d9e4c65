"""TiDB's binlog: bytes into values, prewrites paired with their answers, tables by their DDL jobs.

In:  payloads of WriteBinlog as TiDB sends them, in order of arrival; DDL jobs as TiDB's history has them.
Out: transactions in order of commit_ts, their changes, and how far the source is resolved. No socket and no lake here.

Sources: tipb's binlog.proto and pump.proto, TiDB's pkg/table/tables, pkg/util/codec and pkg/types/json_binary.go, all
of release 7.5; tidb-binlog's drainer/translator. Checked against streams recorded from a TiDB 7.5 (tests/golden/tidb).
"""
