"""Generated columns missing in MariaDB's log, asked for at the server (apply_steps/ask_generated).

A generated column's value follows from stored columns of its row, and from nothing else. A row
read at any later time has the value of the log's row on two conditions: these stored columns are
equal, and the table computes the value as before. A row with a later change is asked for again, in
a window with that change.

A server shows an expression in its own words, perhaps others than the statement's in the log.
Where they aren't plainly the same, the server's log after the window is looked through once. If
no statement there is about the table, the server shows the columns of the window's last version.
"""
