"""Changelogs: for a table with one, a Delta table to which every change is appended, in commit order.

In:  segments of a window, with the columns in force (rows.py).
Out: changelog/<database>/<table> (table.py); readers of it, each at its own place (reading.py), in
     others' forms too (formats.py).

Exactly once, by the same means as silver: a window's changes are one Delta commit, which also
records the window's end as the transaction version of `tidegate/<pipeline>/changelog/<table>`. It
is made before silver's own commit of that window. The changelog therefore has everything that
silver has. A repeated window appends only the part above the recorded end: nothing, if the kill
came after the commit. Two applies at once: who decided on another end is overtaken.
"""
