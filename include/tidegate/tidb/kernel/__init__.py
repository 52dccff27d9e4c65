"""TiDB's binlog read by compiled code.

In:  addresses: of a segment's bytes, of a plan as data, of a state.
Out: records of payloads and of rows; values in Arrow buffers. Where bytes aren't as TiDB writes them, a number below 0:
     whoever called asks the slow decoder (by_row.py), which says what is wrong.
"""
