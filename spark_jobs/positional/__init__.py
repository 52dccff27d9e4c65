"""The positional writer: staged changes go into silver by position. Few changes need no Spark."""
