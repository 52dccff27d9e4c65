"""The server's log compared with the captured one: is it the same history, and is it still there?

In:  a connected server, the captured segments' places and checksums.
Out: continuity.py: PositionLost if the log no longer continues the captured one. other_history.py:
     the same for another MariaDB server. log_end.py: the same while capture is connected.
     retention.py: the time until the server purges uncaptured log.
"""
