"""The standing of a pipeline's tables, as the lake keeps it. The rules themselves are in tidegate/standing.

In:  a lake.
Out: followed.py: the tables that the pipeline follows. held.py: where each of them stands. from_bronze.py: whether a
     table that waits can catch up from bronze alone.
"""
