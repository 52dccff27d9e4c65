"""How tables come, go and go on: the pipeline file's selection, sources that are behind, holds that are over.

In:  control/followed, versions that empty a table, TABLE_MAPs that contradict schema_history.
Out: standings, and changes of control/followed and control/schema_history.
"""
