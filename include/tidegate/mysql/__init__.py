"""MySQL and MariaDB as a source: connections, what a server says of itself, its replication stream cut into segments.

In:  an Airflow-style connection, a source's entry in the pipeline file, where capture ended.
Out: facts and refusals in one line; segments whose events were checked; whether the server still
     has the next events.

Rooms, from the lowest: connecting/ opens a connection, sql_text/ writes SQL, facts/ asks a server about itself.
demands/ judges the facts. stream/ receives the log, history/ compares it with the captured one, start/ finds the
beginning. servers/ chooses between hosts. capturing/ is for capture, checking/ for `tidegate check`, looking/ for
everybody else.
"""
