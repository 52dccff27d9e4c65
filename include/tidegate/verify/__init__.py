"""Verification: is silver what the source's own SELECT says? While the source is written to.

In:  a pipeline, connections to its sources, its lake at published cuts.
Out: a Report: per table equal, different (with keys), unsettled, held or dropped; rows in control/verification.

Values are compared by nothing that moves rows: the server's own SQL, PyMySQL, DuckDB, a reading of types of its own. A
verifier with the mover's code is blind to that code's mistakes. The mover's decoding answers one question only: the
keys changed while both sides were read. settle.py says why that can't hide anything.
"""
