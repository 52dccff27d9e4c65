"""Statements of a segment: DDL for schema_history, DML without rows in the log, XA branches and
their answers.

In:  an EventIndex.
Out: values in log order. UnknownEvent if a statement may change rows and can't be followed.
"""
