"""A shop to try tidegate on: its schema, its workload, its display, around tidegate.local's MariaDB and Airflow.

In:  a machine with Python and Java.
Out: rows in both databases, and the proof that they are equal. Nothing here is needed for one's own server.
"""
