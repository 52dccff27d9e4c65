"""Statements of a segment: DDL for schema_history, DML that logged no rows, XA branches and their answers.

In:  an EventIndex.
Out: values in log order. UnknownEvent where a statement may change rows and can't be followed.
"""
