"""Where Spark works on a silver table: a copy of its log in a folder of the table, never the log itself.

In:  a table, a session.
Out: what Spark's statements did there, as one commit of ours on the version that was copied.
"""
