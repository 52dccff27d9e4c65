"""SQL for a server: names, conditions, questions about many tables.

In:  names as the server spells them, a Condition, a cursor.
Out: sql.py: fragments with quoted names. condition.py: a condition that the server answers as tidegate does.
     catalog.py: answers of information_schema about many tables.
"""
