"""Rows of a segment under the versions of their tables.

In:  an EventIndex, versions, the wanted spans of commit_ts.
Out: Arrow batches (decode.py), row images as logged (row_images.py), or a segment without some rows (without_rows.py).
"""
