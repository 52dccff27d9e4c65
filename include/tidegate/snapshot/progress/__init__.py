"""How far snapshots are: events of control/snapshots, and what follows from them.

In:  the records of people, reader and apply, and the pipeline file.
Out: per table what is left to read, which waves wait for an answer, and which tables are due.
"""
