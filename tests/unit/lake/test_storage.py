"""One set of storage options, told to delta-rs and to Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.errors import ConfigError
from tidegate.lake.storage import delta_options, delta_url, spark_options, spark_path


def test_a_local_path_is_absolute_for_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert delta_url("lake", "bronze/segments") == f"{tmp_path}/lake/bronze/segments"
    assert spark_path("lake") == f"{tmp_path}/lake"
    assert spark_options("lake", {"aws_region": "x"}) == {}


def test_s3_keys_endpoint_and_plain_http_reach_spark() -> None:
    options = delta_options(
        {"AWS_ENDPOINT_URL": "http://store:9000", "aws_allow_http": "true"}, {"AWS_SECRET_ACCESS_KEY": "s"}
    )
    assert options["aws_secret_access_key"] == "s"
    assert spark_options("s3://b/p", options) == {
        "spark.hadoop.fs.s3a.secret.key": "s",
        "spark.hadoop.fs.s3a.endpoint": "http://store:9000",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        "spark.hadoop.fs.s3a.path.style.access": "true",
    }
    assert spark_path("s3://b/p", "t") == "s3a://b/p/t"
    assert delta_url("s3a://b/p/", "t") == "s3://b/p/t"


def test_azure_key_is_set_for_its_account() -> None:
    found = spark_options("abfss://c@acc.dfs.core.windows.net/p", {"azure_storage_account_key": "k"})
    assert found == {"spark.hadoop.fs.azure.account.key.acc.dfs.core.windows.net": "k"}


def test_an_unknown_scheme_is_named() -> None:
    with pytest.raises(ConfigError, match="hdfs"):
        delta_url("hdfs://x/y", "t")
