"""The jobs of a lake: who runs one now, and what starts one.

In:  a lake.
Out: leases.py: one holder per job. lease_wishes.py: a waiter tells the holder that it waits.
     news.py, reader_news.py: whether apply has work. new_cuts.py: what a run of apply has published
     so far.
"""
