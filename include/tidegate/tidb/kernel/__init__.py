"""TiDB's binlog read by compiled code.

In:  addresses: of a segment's bytes, of a plan as data, of a state.
Out: records of payloads and of rows; values in Arrow buffers. A number below 0 for bytes that TiDB doesn't write: then
     the caller uses the slow decoder (by_row.py), which names the fault.
"""
