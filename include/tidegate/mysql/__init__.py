"""MySQL and MariaDB as a source: connections, what a server says of itself, its replication stream cut into segments.

In:  an Airflow-style connection, a source's entry in the pipeline file, where capture ended.
Out: facts and refusals in one line; segments whose events were checked; whether the server still
     has the next events.
"""
