"""TiDB's binlog read by compiled code.

In:  addresses: of a segment's bytes, of a plan as data, of a state.
Out: records of payloads and of rows; values in Arrow buffers. At bytes unlike TiDB's, a number below 0: the caller
     asks the slow decoder (by_row.py), and that names the fault.
"""
