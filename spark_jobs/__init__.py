"""Spark applications: a job is a tuple of steps and a loop over windows.

In:  bronze, schema_history and a pipeline file named on the command line.
Out: silver, cuts, ledger. A job meets Airflow only in argv and Delta tables.
"""
