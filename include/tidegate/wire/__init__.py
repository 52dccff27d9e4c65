"""The wire: a source's connection, what it says of itself, and its replication stream.

In:  an Airflow-style connection.
Out: facts about the server, refusals in one line, and raw events with their checksums verified.

Nothing here knows what a segment or a lake is.
"""
