"""The keys below `sources:` in the pipeline file: a class per kind of source, and the traits that others ask for.

In:  the section's YAML, as pydantic hands it over.
Out: a source of its kind, and its SourceTraits.
"""
