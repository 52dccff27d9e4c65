"""Figures of a lake: for people, for metrics and for other DAGs.

In:  a lake.
Out: status.py: the sources and tables now. complete_hours.py: the hours without a missing commit. verified.py: the
     verdicts of verify. maintained.py: the last run of maintain. timeline.py: the last hour, day or week. latency.py
     and usage.py also record what they measure.
"""
