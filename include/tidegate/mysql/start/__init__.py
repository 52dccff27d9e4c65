"""Where capture of a server begins, or goes on, and the schema that is true there.

In:  a server's facts, the pipeline file, what is captured already.
Out: a Checkpoint and what to ask for; a baseline in control/schema_history. refresh.py: a new baseline
     of one held table.
"""
