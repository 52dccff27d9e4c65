"""`tidegate check`: whether a pipeline can run, and which tables will wait.

In:  a pipeline, its lake, its sources.
Out: examination.py: a line per finding. idle_rules.py: rules of the pipeline file that no table meets.
     unfit_modes.py: tables that can't have their mode.
"""
