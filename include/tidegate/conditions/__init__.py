"""Conditions on the columns of a row, as a pipeline file says them: a part of SQL that means the same everywhere.

In:  a text such as `region IN ('EU', 'UK') AND price >= 10`.
Out: a value (model.py), read by condition_text.py. matching.py asks rows of Arrow, and mysql/sql_text/condition.py a
     server.

Texts are compared by their bytes in UTF-8, numbers and dates by their values: no collation, no conversion. As in SQL a
comparison with NULL is unknown, and a row is taken where the whole is true.
"""
