"""The processes of tidegate on this computer: database servers, Airflow, and the jars of Spark.

In:  the project's root, and the network at the first run.
Out: processes that end with their starter, and files under .tidegate. `tidegate up`, the demo, the Docker image, tests
     and benchmarks use them. None of it handles a pipeline's data.
"""
