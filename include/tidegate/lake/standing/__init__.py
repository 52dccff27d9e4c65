"""Where a pipeline's tables stand, as the lake records it. The rules themselves are in
tidegate/standing.

In:  a lake.
Out: followed.py: the tables the pipeline follows. held.py: where each table stands. from_bronze.py:
     whether a waiting table can catch up from bronze alone.
"""
