"""A connection to a server, and the meaning of what the server refuses.

In:  an Airflow connection, or the arguments of pymysql.connect.
Out: connection.py: an open connection, or SourceRefused or SourceUnavailable. client.py: PyMySQL's connection, safer
     and for less CPU. server_errors.py: a server's error codes and words.
"""
