"""The steps of the apply job, one per file: each takes an Application, the window and the values that it reads, and
returns what it makes (spark_jobs/window/made.py). A step never imports another one.
"""
