"""How far snapshots are: events of control/snapshots, and their consequences.

In:  the records of people, reader and apply, and the pipeline file.
Out: per table the unread part, the unanswered waves, and the due tables.
"""
