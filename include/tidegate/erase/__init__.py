"""A person's rows leave the whole lake at once (docs/runbooks/erase-a-person.md).

In:  a table, a condition on its rows; the lake, the source, which must not have the rows any more.
Out: bronze's segments and chunks written anew without the rows, and otherwise as they were captured; silver's files
     without dead rows, no older version of it; a row of control/actions. A table that can't be erased from is refused
     by name, before anything is changed.

Erased are rows by their keys: of the rows that the condition is true of, in any image that bronze has, and of all rows
that had one of these keys or got it. Any step may be killed; run again, it does what is left.
"""
