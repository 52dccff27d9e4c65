"""Where Spark works on a silver table: a copy of its log in a folder of the table, never the log itself.

In:  a table, a session.
Out: the effect of Spark's statements there, as one commit of ours on the version that was copied.
"""
