"""The effects of a window's foreign keys, where the log lacks them (include/tidegate/cascades).

In:  a window after decode, silver's rows of children.
Out: rows for the play, and what comes out of it as changes. The step is
     spark_jobs/apply_steps/follow_cascades.py.
"""
