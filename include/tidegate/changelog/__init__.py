"""Changelogs: for a table with one, a Delta table to which every change is appended, in commit order.

In:  segments of a window, with the columns in force (rows.py).
Out: changelog/<database>/<table> (changelog_table.py), and its rows from any place on (reading.py).
     query/ has its readers, and the forms of other tools.

Exactly once, by the same means as silver: a window's changes are one Delta commit, which also
records the window's end as the transaction version of `tidegate/<pipeline>/changelog/<table>`. It
is made before silver's own commit of that window, so the changelog has everything that silver has.
A repeated window appends only the part above the recorded end: nothing, if the kill came after the
commit. If two applies run at once, the one that based its rows on an older end fails (Overtaken).
"""
