"""Schema history: which columns a physical table had at a commit_ts.

In:  a baseline read from the server, and every DDL from the binlog.
Out: TableVersion values, and what their changes mean for silver.

It has four layers. Each uses only those below it:
- follow: from versions to changes of silver;
- replay: from statements to versions;
- ddl: from text to a statement as data;
- model: what a table is: columns, types, character sets, partitions.
"""
