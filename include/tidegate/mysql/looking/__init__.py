"""A source seen from outside of capture.

In:  a source's connection.
Out: asked.py: the end of its log, its tables and its files, for status and metrics. position_asker.py: the end of its
     log, again and again. marker.py: rows with the time of their writing, to measure the latency by.
"""
