"""A server as capture's source. The stream itself is in stream/, its beginning in start/.

In:  a pipeline, the name of a source, its connection.
Out: reader.py: the source, for a run of capture. second_connection.py, prepared_watch.py: questions beside the
     stream. acceptance.py: capture goes on after a loss, once a person accepts it.
"""
