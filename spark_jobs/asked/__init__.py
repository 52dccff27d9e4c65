"""Generated columns missing in MariaDB's log, asked for at the server (apply_steps/ask_generated).

A generated column's value depends only on stored columns of its row. Therefore a row that is read later
has the value of the logged row if two things hold: these stored columns are equal, and the table
still computes the value in the same way. If the row has changed since, it is asked for again in the
window of that change.

A server may show an expression in other words than the logged statement. If the two texts differ,
the server's log after the window is searched once. If no statement there is about the table, the
shown columns are those of the window's last version.
"""
