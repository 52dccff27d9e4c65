"""A changefeed of TiCDC that writes to a storage path, as capture's source.

In:  the path (a folder, or a bucket's prefix), which TiCDC writes and nobody else.
Out: segments of whole lines in order of commit_ts, and nothing above the changefeed's checkpoint.

The path is only read. The room ticdc/ reads the lines.
"""
