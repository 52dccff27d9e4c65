"""The keys below `tables:` in the pipeline file: patterns, routes, and a rule per file.

In:  the section's YAML, as pydantic hands it over.
Out: Tables, and the rules that it gives for a table's name.
"""
