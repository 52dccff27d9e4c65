"""One column on both sides of a verification, in a form in which equal values are equal.

In:  a column's type at the server, and in silver.
Out: SQL for either side, values, and the types that silver should have.
"""
