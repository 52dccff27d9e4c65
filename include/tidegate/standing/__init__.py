"""The standing of a table: its place in its life, why it waits, and its change at an event.

In:  a Standing, an event, and Facts (values and callables, so nothing is loaded without a rule that asks).
Out: step(): the new Standing, and whether others lack rows by it. shown: the sentences that people read.

The room is pure: it knows neither the lake nor Spark. causes.py says what ends each cause, step.py has one rule per
event; `make model` runs these very rules. spark_jobs/window/standing/standings.py asks them. Apply appends to
control/table_states by spark_jobs/window/positions.py, a person's release by lake/standing/held.py. maintain forgets
old rows of it.
"""
