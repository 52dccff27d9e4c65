"""Several servers: the hosts of one source, and the sources of one pipeline.

In:  a source's hosts, the facts of each.
Out: hosts.py: the host that capture reads. other_hosts.py: whether another one could take over. fence.py: whether the
     host still gets its cluster's commits. same_server.py: two sources that are one server.
"""
