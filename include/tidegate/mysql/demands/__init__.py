"""The demands on a server, and the statements that meet them.

In:  the facts of a server, the wishes of a pipeline.
Out: preflight.py: the findings, by rules. snapshot_grants.py: the rights that only snapshots need. paste.py: SQL for an
     administrator. service_commands.py: the same for a cloud's service, which refuses SET GLOBAL.
"""
