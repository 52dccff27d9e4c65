"""Read silver: all tables at one cut.

In:  a lake, a published cut (lake/cuts/published.py).
Out: DuckDB with a view of each table, Polars frames and Spark DataFrames at the same versions
     (pinned.py); whether a cut's files are still there (readable.py). Nothing is written.

    with open_cut("shop") as cut:                      the newest cut; at="2026-11-22T08:00" for an older one
        cut.sql("SELECT sum(total) FROM shop.orders")  DuckDB
        cut.polars("shop.orders").collect()            Polars
        cut.spark(spark, "shop.orders")                Spark
"""
