"""The rows of a Pump's segment, as changes of tables.

In:  a segment, versions of its tables, the answers of its prewrites.
Out: Arrow batches (decode.py, by compiled code; by_row.py, value by value), row images, a summary for the pairing.
"""
