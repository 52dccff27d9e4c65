"""A kind of source that somebody adds and doesn't finish fails at once, and says what it lacks."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, Literal, get_args

import pytest

from tidegate import pipelines
from tidegate.cli import check as cli_check
from tidegate.config import AnySource, Flavour, Pipeline, parse
from tidegate.config.source_keys.any_source import AnySourceSection
from tidegate.config.source_keys.source_traits import SourceTraits, as_named
from tidegate.config.source_keys.sources import KINDS, kind_of
from tidegate.connections import Connection
from tidegate.lake.files import LakeFiles

TRAITS = SourceTraits(
    log=None, sql_conn_id="db", replica_conn_id=None, watched_conn_id=None, cluster=None, pushed_seconds=None,
    paths=(), files=(), in_silver=as_named, has_positions=False, bounds_timestamps=True, shows_past=False,
    leaves_out_tables=False, logs_own_tables=False, changefeed=False, leaves_out_generated=False, erases_rows=False,
    reader="another.kind",
    heartbeats_prove=False,
)  # fmt: skip


class Unfinished(AnySourceSection):
    flavour: Literal["fourth"]


class Fourth(Unfinished):
    @property
    def traits(self) -> SourceTraits:
        return TRAITS


def pipeline(tmp_path: Path) -> Pipeline:
    """Its only source is of the fourth kind."""
    text = f"pipeline: p\nlake: {{path: {tmp_path}}}\nsources: {{main: {{conn_id: db, flavour: mysql}}}}\n"
    known = parse(text + "tables: {include: ['*.*']}\n", where="p.yaml")
    return known.model_copy(update={"sources": {"main": Fourth(flavour="fourth")}})


def connection(name: str) -> Connection:
    return Connection(name, "mysql", host="h")


def test_a_kind_without_traits_cant_be_read_from_a_pipeline_file() -> None:
    class File(Pipeline):
        sources: dict[str, Unfinished]  # type: ignore[assignment]

    text = {"pipeline": "p", "lake": {"path": "l"}, "tables": {"include": ["*.*"]}}
    with pytest.raises(TypeError, match="class Unfinished with abstract method traits"):
        File.model_validate(text | {"sources": {"main": {"flavour": "fourth"}}})


def test_no_question_has_an_answer_that_a_kind_didnt_give() -> None:
    assert not [field.name for field in dataclasses.fields(SourceTraits) if field.default is not dataclasses.MISSING]
    for field in dataclasses.fields(SourceTraits):
        given: dict[str, Any] = {f.name: getattr(TRAITS, f.name) for f in dataclasses.fields(TRAITS)}
        del given[field.name]
        with pytest.raises(TypeError, match=field.name):
            SourceTraits(**given)


def test_every_kind_is_known_by_its_flavour() -> None:
    assert set(KINDS.values()) == set(get_args(AnySource))
    for flavour in Flavour:
        (kind,) = (kind for kind in KINDS.values() if flavour in get_args(kind.model_fields["flavour"].annotation))
        assert KINDS[kind_of({"flavour": flavour})] is kind


def test_a_kind_without_a_reader_is_never_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known, lake = pipeline(tmp_path), LakeFiles(str(tmp_path))
    monkeypatch.setattr(cli_check, "open_lake", lambda _: (known, lake))
    for work in (
        lambda: pipelines.capture_run(known, "main", tmp_path, sources=connection, lakes=connection),
        lambda: pipelines.asking(known, lake, connection)("main"),
        lambda: pipelines.need_connections(known, connection),
        lambda: cli_check.check("p"),
    ):
        with pytest.raises(AssertionError, match="unreachable"):
            work()
