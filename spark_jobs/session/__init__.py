"""The ground of the jobs: Spark's sessions, a job's command line, and what Spark's errors mean."""
