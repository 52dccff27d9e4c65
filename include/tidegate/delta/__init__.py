"""Delta's log without Spark: reading it, committing to it, and who may.

In:  folders of small objects, on a disk or in an object store.
Out: a table's state, commits that arbitrate between processes and machines, leases.

Each commit and each lease is one object made by put-if-absent (Delta's PROTOCOL.md, "Delta Log Entries"): of all that
try a name at most one makes it, whatever machine they run on. This room knows nothing of tidegate's own tables.
"""
