"""tidegate: keeps Delta Lake tables equal to MySQL, MariaDB and TiDB tables, from their binlogs.

This is the library: no Airflow, no Spark; it ships to executors as it is. ARCHITECTURE.md is
the map of its rooms.
"""

__version__ = "0.3.0"
