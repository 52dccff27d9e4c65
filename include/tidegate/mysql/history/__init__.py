"""The server's log against the captured one: the same history, and still there?

In:  a connected server, the captured segments' places and checksums.
Out: continuity.py: PositionLost where the log no longer continues the captured one. other_history.py: the same
     question to another MariaDB server. log_end.py: the same while capture is connected. retention.py: the time until
     the server purges uncaptured log.
"""
