"""Delta tables' logs, read and written without a JVM: every commit of tidegate goes through this room."""
