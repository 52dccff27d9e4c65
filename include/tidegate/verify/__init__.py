"""Verification: compare silver with the source's own SELECT, while the source is written to.

In:  a pipeline, connections to its sources, its lake at published cuts.
Out: a Report: per table equal, different (with keys), unsettled, held or dropped; rows in control/verification.

No code that moves rows compares values: verify uses the server's own SQL, PyMySQL, DuckDB, and its own table of types.
A verifier with the mover's code wouldn't see that code's mistakes. The mover's decoding answers only one question:
which keys changed while both sides were read. settle.py explains why that can't hide a fault.
"""
