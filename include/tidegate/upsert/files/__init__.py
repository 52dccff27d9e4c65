"""Data files of a silver table: how they look, written and opened, with their statistics.

In:  rows, a table's columns and partitions.
Out: Parquet files, the `add` actions that adopt them, live rows of files.
"""
