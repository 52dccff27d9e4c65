"""How tables come, go and go on: the pipeline file's selection, sources left behind, ended holds.

In:  control/followed, versions emptying a table, TABLE_MAPs in conflict with schema_history.
Out: standings, and changes of control/followed and control/schema_history.
"""
