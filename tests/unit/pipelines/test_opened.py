"""A pipeline's lake and sources, opened with connections.

In:  connections as the environment and Airflow hold them.
Out: what a store's client and PyMySQL are given: the same from both.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tidegate import pipelines
from tidegate.config import parse
from tidegate.connections import Connection, from_environment
from tidegate.errors import ConfigError
from tidegate.lake.files import LakeFiles

TEXT = """pipeline: p
lake: {path: "s3://bucket/p", conn_id: the_lake, storage_options: {AWS_REGION: eu-west-1, aws_allow_http: "true"}}
sources: {main: {conn_id: db, flavour: mysql}}
tables: {include: ["d.*"]}
"""
KEYS = {
    "aws_access_key_id": "AK/ID",
    "aws_secret_access_key": "se/cret",
    "aws_region": "eu-central-1",
    "aws_allow_http": "true",
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "p.yaml").write_text(TEXT)
    return tmp_path / "p.yaml"


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(
            {"conn_type": "aws", "login": "AK/ID", "password": "se/cret", "extra": {"region_name": "eu-central-1"}}
        ),
        "aws://AK%2FID:se%2Fcret@/?region_name=eu-central-1",
        json.dumps(
            {
                "conn_type": "generic",
                "extra": {
                    "AWS_ACCESS_KEY_ID": "AK/ID",
                    "AWS_SECRET_ACCESS_KEY": "se/cret",
                    "AWS_REGION": "eu-central-1",
                    "aws_session_token": None,
                },
            }
        ),
    ],
    ids=["aws in JSON", "aws in a URI", "extra alone"],
)
def test_a_lakes_connection_gives_its_keys_however_it_is_written(
    file: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_THE_LAKE", text)
    lake = pipelines.open_lake(pipelines.load(file), from_environment)
    assert lake.root == "s3://bucket/p"
    assert lake.storage_options == KEYS
    assert "se/cret" not in repr(lake)


def test_a_login_is_a_key_for_an_aws_connection_only(file: Path) -> None:
    pipeline = pipelines.load(file)
    other = Connection("c", "generic", login="AK/ID", password="se/cret")
    assert pipelines.storage_options(pipeline.lake, lambda _: other) == {
        "aws_region": "eu-west-1",
        "aws_allow_http": "true",
    }


def test_a_source_is_reached_as_its_connection_says(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = pipelines.load(file)
    with pytest.raises(ConfigError, match="connection 'db' is not defined"):
        pipelines.source_info(pipeline, "main", from_environment)
    monkeypatch.setenv("AIRFLOW_CONN_DB", "mysql://user:pass@host:3307/")
    info = pipelines.source_info(pipeline, "main", from_environment)
    assert (info.host, info.port, info.user, info.password) == ("host", 3307, "user", "pass")


def test_a_tidb_with_several_pumps_is_asked_once(tmp_path: Path) -> None:
    pumps = ", ".join(f"p{n}: {{conn_id: sql_{n}, flavour: tidb, listen: ['unix:/p{n}'], cluster: c}}" for n in (1, 2))
    text = f"pipeline: p\nlake: {{path: {tmp_path}}}\nsources: {{{pumps}, db: {{conn_id: db, flavour: mysql}}}}\n"
    pipeline = parse(text + "tables: {include: ['*.*']}\n", where="p.yaml")
    asked: list[str] = []

    def connections(name: str) -> Connection:
        asked.append(name)
        return Connection(name, "mysql", host=f"{name}-host")

    found = pipelines.sql_infos(pipeline, connections, LakeFiles(str(tmp_path)))
    assert {name: info.host for name, info in found.items()} == {"p1": "sql_1-host", "db": "db-host"}
    assert asked == ["sql_1", "db"]


def test_each_kind_of_source_has_the_connection_that_it_needs(tmp_path: Path) -> None:
    sources = (
        "db: {conn_id: a, flavour: mysql}, pump: {conn_id: b, flavour: tidb, listen: ['unix:/p']}, "
        "feed: {conn_id: c, flavour: ticdc, path: 's3://b/feed', protocol: csv, time_zone: UTC}, "
        "folder: {flavour: ticdc, path: /feed, protocol: csv, time_zone: UTC}"
    )
    text = f"pipeline: p\nlake: {{path: {tmp_path}}}\nsources: {{{sources}}}\ntables: {{include: ['*.*']}}\n"
    asked: list[str] = []

    def connections(name: str) -> Connection:
        asked.append(name)
        return Connection(name, "aws" if name == "c" else "mysql", host="h")

    pipelines.need_connections(parse(text, where="p.yaml"), connections)
    assert asked == ["a", "b", "c"]


@pytest.mark.parametrize("text", ['{"extra": "no', '{"extra": 7}', '{"port": "x"}'])
def test_a_connection_that_cannot_be_read_is_refused_without_its_text(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^AIRFLOW_CONN_X: the connection is not valid JSON; correct it$"):
        from_environment("x", {"AIRFLOW_CONN_X": text})
