"""The standing of a table: where it is in its life, why it waits, and what becomes of that when something happens.

In:  a Standing, an event, and Facts (values and callables, so that nothing is loaded that a rule doesn't ask for).
Out: step(): the new Standing, and whether others lack rows by it. shown: the sentences that people read.

The room is pure: it knows neither the lake nor Spark. causes.py says what ends each cause, step.py has one rule per
event; `make model` runs these very rules. spark_jobs/window/standing/standings.py asks them and is the one writer of
control/table_states beside a person's release (lake/held.py).
"""
