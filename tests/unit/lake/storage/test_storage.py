"""One set of storage options, told to delta-rs and to Spark."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tidegate.config import parse
from tidegate.errors import ConfigError
from tidegate.lake.files import lake_files
from tidegate.lake.storage.storage_options import delta_options, lake_root, spark_options, spark_uri
from tidegate.spark_settings import submit_conf


def test_a_relative_path_is_taken_from_the_projects_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    assert lake_root("lake/", tmp_path) == f"{tmp_path}/lake"
    assert lake_root("file:///x/lake", tmp_path) == "/x/lake"
    lake = lake_files("lake", tmp_path, {})
    assert lake.uri("bronze/segments") == lake.spark_uri("bronze/segments") == f"{tmp_path}/lake/bronze/segments"
    assert spark_options(lake.root, {"aws_region": "x"}) == {}


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
    assert lake_root("s3a://b/p/", Path("/")) == "s3://b/p"
    assert spark_uri("s3://b/p/t") == "s3a://b/p/t"
    lake = lake_files("s3a://b/p/", Path("/"), options)
    assert (lake.uri("t"), lake.spark_uri("t"), lake.local("t")) == ("s3://b/p/t", "s3a://b/p/t", "p/t")
    assert lake.spark_options == spark_options("s3://b/p", options)
    assert "'s'" not in repr(lake)


def test_azure_key_is_set_for_its_account() -> None:
    found = spark_options("abfss://c@acc.dfs.core.windows.net/p", {"azure_storage_account_key": "k"})
    assert found == {"spark.hadoop.fs.azure.account.key.acc.dfs.core.windows.net": "k"}


def test_spark_shows_no_key_of_a_store_among_its_settings() -> None:
    text = "pipeline: p\nlake: {path: x}\nsources: {s: {conn_id: c, flavour: mysql}}\ntables: {include: ['d.*']}\n"
    hides = re.compile(submit_conf(parse(text, where="p.yaml"), Path("/"))["spark.redaction.regex"])
    azure = "abfss://c@acc.dfs.core.windows.net/p"
    for url, given in (
        ("s3://b/p", {"aws_access_key_id": "k", "aws_secret_access_key": "k", "aws_session_token": "k"}),
        (azure, {"azure_storage_account_key": "k"}),
        (azure, {"azure_storage_sas_token": "k"}),
        (azure, {"azure_client_id": "i", "azure_client_secret": "k", "azure_tenant_id": "t"}),
    ):
        shown = {name for name, value in spark_options(url, given).items() if value == "k"}
        assert shown, given
        assert all(hides.search(name) for name in shown)


def test_an_unknown_scheme_is_named() -> None:
    with pytest.raises(ConfigError, match="hdfs"):
        lake_root("hdfs://x/y", Path("/"))


@pytest.mark.parametrize(
    "url",
    [
        "s3://key:hidden@bucket/lake",
        "s3://hidden@bucket/lake",
        "s3a://key:hidden@bucket/lake",
        "abfss://container:hidden@account.dfs.core.windows.net/lake",
        "abfss://container@account.dfs.core.windows.net/lake?sig=hidden",
        "gs://bucket/lake?token=hidden",
    ],
)
def test_a_key_in_a_url_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ConfigError, match="no key") as refused:
        lake_root(url, Path("/"))
    assert "hidden" not in refused.value.line
    assert lake_root("abfss://c@a.dfs.core.windows.net/x", Path("/")) == "abfss://c@a.dfs.core.windows.net/x"


@pytest.mark.parametrize("url", ["s3://b/a#1", "s3://b/a?", "gs://b/#"])
def test_a_url_is_refused_of_which_not_all_is_the_path(url: str) -> None:
    """A store's client takes the path for the whole address: two tables of s3://b/a#1 would lie in s3://b/a."""
    with pytest.raises(ConfigError, match="can't contain # or"):
        lake_root(url, Path("/"))


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("~/lake", "'~' would be the name of a folder here; write an absolute path"),
        ("$HOME/lake", "'$HOME' would be the name of a folder here"),
        ("s3:/hidden/lake", "'s3:' would be the name of a folder here"),
        (" ", "the path is blank"),
        ("s3://", "s3://...: names no bucket; write it as s3://bucket/prefix"),
        ("gs:///hidden/lake", "gs://...: names no bucket"),
    ],
)
def test_a_path_that_means_another_place_than_it_says_is_refused(path: str, told: str) -> None:
    """Silver would go into a folder of the project, and nobody would look for it there."""
    with pytest.raises(ConfigError) as refused:
        lake_root(path, Path("/x"))
    assert told in str(refused.value)
    assert "hidden" not in str(refused.value)
    assert lake_root("./~/lake", Path("/x")) == "/x/~/lake"


def test_a_scheme_in_capitals_is_the_scheme() -> None:
    assert spark_uri(lake_root("S3://b/x", Path("/"))) == "s3a://b/x"
