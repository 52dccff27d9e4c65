"""The steps of the maintain job, one per file: each takes a Maintenance, and perhaps one silver table."""
