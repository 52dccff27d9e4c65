"""A real TiDB, Pumps of ours beside it, tables of every type, and recorded streams on the whole road."""
