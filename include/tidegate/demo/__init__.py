"""A shop to try tidegate on: an embedded MariaDB, a workload, and Airflow around them.

In:  a machine with Python, Java and nothing else.
Out: real servers on 127.0.0.1, everything they write under .tidegate/.

Nothing here is needed to run tidegate against one's own server; the tests use the same servers.
"""
