"""A Delta table at one version, from its log's actions.

In:  actions of commits and checkpoints.
Out: TableState, its live files, types and demands; actions for the next commit.
"""
