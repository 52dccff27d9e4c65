"""The connections that a pipeline file names, each once: whoever restores a lake elsewhere needs them all."""

from __future__ import annotations

from tidegate import config

FILE = """pipeline: p
lake: {path: s3://b/lake, conn_id: store}
sources:
  a: {conn_id: shop, flavour: mysql, replica_conn_id: replica}
  b: {conn_id: crm, flavour: mariadb, replica_conn_id: replica}
  c: {flavour: ticdc, path: s3://b/feed, protocol: csv, time_zone: UTC, sql_conn_id: tidb, conn_id: store}
tables: {include: ['d.*'], masks: [{match: d.t, columns: [c], how: hmac, key_conn_id: keys}]}
"""


def test_each_section_names_its_own() -> None:
    pipeline = config.parse(FILE, where="p.yaml")
    assert config.conn_ids(pipeline) == ["store", "shop", "replica", "crm", "tidb", "keys", "spark_default"]
    assert config.conn_ids(pipeline.sources["c"]) == ["store", "tidb"]
