"""tidegate: keeps Delta Lake tables equal to MySQL and MariaDB tables, from their binlogs.

This is the library: no Airflow, no Spark; it ships to executors as it is. ARCHITECTURE.md follows one
row through it, with file names.
"""

__version__ = "0.1.0"
