"""The columnar engine: values in Arrow buffers, written by compiled code and driven by plans.

In:  bytes of values as MySQL's family stores and sends them; a plan per column.
Out: one arena for a batch, and Arrow arrays of canonical types from it.

The rooms binlog, tidb, snapshot, changelog and upsert use it. It knows no events, no servers, and
no table's history.
"""
