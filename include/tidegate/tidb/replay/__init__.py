"""Tables in memory, replayed from transactions and DDL jobs.

In:  a recorded stream (recording.py), paired (pairing.py).
Out: every table as SELECT shows it at a TSO. UnsupportedValue where what TiDB did to existing rows can't be told.
"""
