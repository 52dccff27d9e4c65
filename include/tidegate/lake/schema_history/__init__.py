"""control/schema_history: the versions of tables' columns, kept for as long as a window needs them.

In:  a lake.
Out: schema_rows.py: the versions that coming windows need. schema_changes.py: the same history as people read it.
"""
