"""Binlog events: what the bytes of MySQL's and MariaDB's replication protocol mean.

In:  raw events, whole, as the server sent them.
Out: facts about events (header, TABLE_MAP, QUERY ...), and row changes as Arrow batches.

Every byte is accounted for: decoded, ignored by a named rule, or quarantined. Pure.
"""
