"""A Delta table at one version, as its log's actions say it.

In:  actions of commits and checkpoints.
Out: TableState, its live files, types and demands; actions for a next commit.
"""
