"""Silver's tables, seen and changed through their Delta logs alone: no row is read.

In:  a silver table's log; its row of control/cuts.
Out: folders.py: where the tables lie. silver_tables.py: a table is made, emptied or given columns by one commit.
     as_published.py, quiet_tables.py, others_changes.py, check.py: whether a table still is what apply published.
     sizes.py, shards.py, changed_names.py: how large a table is, whose its rows are, how its columns are called.
"""
