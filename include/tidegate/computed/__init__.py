"""Columns of silver beside the source's: expressions in SQL, functions in Python, and their values."""
