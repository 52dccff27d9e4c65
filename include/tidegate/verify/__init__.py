"""Verification: is silver what the source's own SELECT says?

In:  a pipeline, connections to its sources, its lake at a published cut, while the workload is quiet.
Out: a Report: per table equal, different (with keys), held or dropped.

Shares no code with what moves the rows: its own reading of types, its own key, PyMySQL on one side and DuckDB on the
other. A verifier that shares code with the mover is blind to that code's mistakes.
"""
