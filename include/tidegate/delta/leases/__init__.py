"""One holder of a name at a time, on whatever machines.

In:  a LogStore, a name.
Out: Lease; LeaseHeld where another has it.
"""
