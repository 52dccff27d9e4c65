"""TiDB's codec: the bytes of a row's values, and of messages.

In:  bytes of a Pump's records.
Out: Datums, fields of messages, JSON as text.
"""
