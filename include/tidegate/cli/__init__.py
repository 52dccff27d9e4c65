"""The command line: what the DAGs do, without Airflow. One file per command; main.py mounts them."""
