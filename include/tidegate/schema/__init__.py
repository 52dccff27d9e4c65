"""Schema history: which columns a physical table had at a commit_ts.

In:  a baseline read from the server, and every DDL from the binlog.
Out: TableVersion values, and what their changes mean for silver.

Four floors, each of which knows those below it alone:
- follow: from versions to what silver does;
- replay: from statements to versions;
- ddl: from text to a statement as data;
- model: what a table is: columns, types, character sets, partitions.
"""
