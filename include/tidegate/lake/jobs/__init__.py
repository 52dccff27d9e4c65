"""The jobs of a lake: who holds one, and what wakes one.

In:  a lake.
Out: leases.py: one holder per job. lease_wishes.py: a word to the holder that another one waits. news.py,
     reader_news.py: whether apply has work. new_cuts.py: what a run of apply has published so far.
"""
