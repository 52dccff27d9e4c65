"""A binlog as servers write it: events, the shape of rows, statements, names of XA branches.

In:  bytes of one event.
Out: its parts as values. StreamCorrupt, UnknownEvent for what fits no format.
"""
