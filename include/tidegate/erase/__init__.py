"""Erase a person's rows from the whole lake at once (docs/runbooks/erase-a-person.md).

In:  a table, a condition on its rows; the lake, the source, which must not have the rows any more.
Out: bronze's segments and chunks written anew without the rows, and otherwise as they were captured; silver's files
     without dead rows, no older version of it; a row of control/actions. A table that can't be erased from is refused
     by name, before anything is changed.

Rows are erased by their keys. A key counts if the condition is true of a row with it, in any image that bronze has, or
if an update connects it with such a key. Any step may be killed; the next run does what is left.
"""
