"""Published cuts: the Delta versions of all tables at one commit_ts.

In:  a lake; rows of control/cuts.
Out: published.py: the tables of one cut, with the version to read. kept_cuts.py: the rows that maintain keeps.
     lineage.py: the tables that changed since a cut.
"""
