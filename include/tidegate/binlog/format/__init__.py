"""The format of a binlog: events, the shape of rows, statements, names of XA branches.

In:  bytes of one event.
Out: its parts as values. StreamCorrupt, UnknownEvent for bytes of no known format.
"""
