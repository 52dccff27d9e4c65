"""The marks between which a wave is read: in the source's log, in control/snapshots, or a timestamp of a TiDB.

In:  a server, a wave's token.
Out: marks, wherever apply finds them in the log's order.
"""
