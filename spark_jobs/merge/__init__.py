"""The writer by Spark: MERGE, the schema changes of silver, renames; the private log on which Spark does them."""
