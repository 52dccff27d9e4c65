"""Silver's tables, read and changed through their Delta logs alone: no row is read.

In:  a silver table's log; its row of control/cuts.
Out: folders.py: where the tables lie. silver_tables.py: one commit makes or empties a table, or
     adds columns. as_published.py, quiet_tables.py, others_changes.py, rewrites.py, check.py: whether a
     table is still what apply published. sizes.py: how large it is. shards.py: to which shard rows belong.
     changed_names.py: columns with other names.
"""
