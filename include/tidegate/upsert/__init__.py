"""The positional upsert: rows go into a keyed silver table by the places of the rows that they replace.

In:  decoded changes of a window, and what a silver table's Delta log says of its live files.
Out: Parquet files, deletion vectors and the `add` actions that one Delta commit adopts them by.
     The caller commits (delta/log.py); nothing in here writes a log.

The steps: stage.py writes the rows and a narrow key file; keys/resolve.py finds the last change per
key; keys/candidates.py excludes files by their statistics; keys/probe_file.py finds the rows that
are replaced; actions.py makes Delta's actions of it.
"""
