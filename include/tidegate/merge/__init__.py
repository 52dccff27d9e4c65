"""Turn changes into silver's input: the phases of a table's window, and the net change per key.

In:  decoded changes in log order, the versions of their table.
Out: the phases of a table's window, one change per key.

Pure: nothing here reads or writes. The SQL that carries it out is spark_jobs/apply_steps/merge_into_silver.py.
"""
