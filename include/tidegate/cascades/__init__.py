"""Changes of foreign keys below the binlog: InnoDB's ON DELETE and ON UPDATE actions, by the parent's rows.

In:  foreign keys of table versions (rules.py), the row changes of a window in their order, the rows that may match.
Out: the changes that the engine made to children, as if they had been logged (follow.py). An uncertain result is a
     Doubt: the child is held, never guessed.

Nothing here knows the lake: spark_jobs/apply_steps/follow_cascades.py brings rows, and stages what comes out.
"""
