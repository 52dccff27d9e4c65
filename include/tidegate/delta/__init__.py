"""Delta's log without Spark: to read it, to commit to it, and to decide who may.

In:  folders of small objects, on a disk or in an object store.
Out: a table's state, commits that decide between processes and machines, leases.

Each commit and each lease is one object made by put-if-absent (Delta's PROTOCOL.md, "Delta Log
Entries"). At most one of all processes on all machines makes a name. This room knows nothing of
tidegate's own tables.
"""
