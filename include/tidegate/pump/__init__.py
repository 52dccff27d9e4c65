"""A Pump for TiDB up to 8.3: TiDB writes its binlog to us, as it would to a Pump of TiDB Binlog.

In:  WriteBinlog requests over gRPC; TiDB's SQL port for timestamps, its status port for the fate of
     orphans; PD's etcd, where TiDB finds a Pump, and a person asks it to pause or to close
     (registration.py).
Out: a source for capture (capture/source.py): payloads in order of arrival, acknowledged when they
     are durable.

One source of a pipeline is one Pump. A request waits in memory until capture has synced it to the
value log; one sync serves many requests. Only then does TiDB hear that it is stored.
"""
