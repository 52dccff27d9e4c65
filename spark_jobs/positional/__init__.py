"""The positional writer: staged changes into silver by position, without Spark where they are few."""
