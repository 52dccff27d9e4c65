"""From changes to what silver needs: windows, and the net change per key.

In:  what bronze says of its segments, and decoded changes in log order.
Out: the window to apply next, the phases of a table's window, one change per key.

Pure: nothing here reads or writes. The SQL that carries it out is spark_jobs/steps/merge_into_silver.py.
"""
