"""A first start that failed goes on where it began; anew only where the source can't tell what came since."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tidegate.capture.captured import Captured
from tidegate.capture.value_log.log import ValueLog
from tidegate.config import Flavour, Pipeline, parse
from tidegate.errors import PositionLost
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.files import LakeFiles
from tidegate.lake.schema_history.schema_rows import needed_rows
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.mysql.facts.server_facts import SourceFacts
from tidegate.mysql.start import position as beginning
from tidegate.mysql.start.position import first_checkpoint
from tidegate.mysql.start.recorded import Began, earlier_versions, record_baseline, recorded_start
from tidegate.position import Position
from tidegate.schema.model.columns import Column, TableVersion, VersionStatus
from tidegate.schema.replay.history import BASELINE, DEFAULTS, SchemaHistory

FIRST = SourceFacts(
    where="here",
    flavour=Flavour.MYSQL,
    version="9.7.4",
    server_id=1,
    server_uuid="u-1",
    variables={},
    grants=(),
    position=Position.of("log.000003", 700),
    gtid_executed="5e0a5b0c-0000-0000-0000-000000000001:1-9",
    gtid_purged="",
    binary_logs=(("log.000002", 900), ("log.000003", 700)),
)
LATER = replace(
    FIRST,
    position=Position.of("log.000004", 300),
    gtid_executed="5e0a5b0c-0000-0000-0000-000000000001:1-20",
    binary_logs=(("log.000003", 1900), ("log.000004", 300)),
)
PURGED = replace(LATER, gtid_purged="5e0a5b0c-0000-0000-0000-000000000001:1-15", binary_logs=(("log.000004", 300),))
PROMOTED = replace(LATER, server_id=2, server_uuid="u-2", binary_logs=(("other.000001", 5000),))


def pipeline_of(dump: str, start: str) -> Pipeline:
    source = f"{{conn_id: one, flavour: mysql, dump: {dump}, start: {start}}}"
    return parse(
        f"{{pipeline: p, lake: {{path: /l}}, sources: {{one: {source}}}, tables: {{include: ['*.*']}}}}", where="t"
    )


@dataclass
class Begun:
    """What of a run counts here; its baseline has these tables, and counts how often it was read."""

    lake: LakeFiles
    dump: str = "gtid"
    start: str = "now"
    tables: dict[str, VersionStatus] = field(default_factory=dict)
    read: int = 0
    source_name: str = "one"
    connection: ConnectionInfo = field(default_factory=lambda: ConnectionInfo("h", 1, "u", ""))

    @property
    def pipeline(self) -> Pipeline:
        return pipeline_of(self.dump, self.start)

    @property
    def on_first_start(self) -> Callable[[SourceFacts, Position], None]:
        return self._record

    def _record(self, facts: SourceFacts, position: Position) -> None:
        self.read += 1
        began = Began.of(facts, self.pipeline.sources["one"])
        found = [self._version("", "", DEFAULTS, position, VersionStatus.ACTIVE)]
        found += [self._version("d", name, BASELINE, position, status) for name, status in self.tables.items()]
        record_baseline(self.lake, "one", found, began, earlier_versions(self.lake, "one"))

    def _version(self, database: str, table: str, kind: str, position: Position, status: VersionStatus) -> TableVersion:
        columns = (Column(self.read, "a", "int", nullable=False),) if table else ()
        place = (position.file, position.offset)
        return TableVersion("one", database, table, 1, 0, *place, kind, "", columns, (), "utf8mb4", status=status)


@pytest.fixture(autouse=True)
def _settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """These facts are of no server that could be asked again."""
    monkeypatch.setattr(beginning, "settled", lambda _info, facts: facts)
    monkeypatch.setattr(beginning, "wait_for_prepared", lambda _info, _where: None)


def begun(tmp_path: Path) -> Begun:
    return Begun(LakeFiles(str(tmp_path / "lake")), tables={"t": VersionStatus.ACTIVE, "gone": VersionStatus.ACTIVE})


def checkpoint_of(run: Begun, facts: SourceFacts, folder: Path) -> tuple[str, int, str]:
    log = ValueLog(folder / "log")
    try:
        found = first_checkpoint(run, facts, Captured(Bronze(run.lake, "one"), log, None))
    finally:
        log.close()
    return found.place.file, found.place.offset, found.place.gtid_executed


@pytest.mark.parametrize(("dump", "place"), [("gtid", ("", 4)), ("position", ("log.000003", 700))])
def test_a_start_that_captured_nothing_goes_on_where_it_began(
    tmp_path: Path, dump: str, place: tuple[str, int]
) -> None:
    run = begun(tmp_path)
    run.dump = dump
    for facts in (FIRST, LATER):
        assert checkpoint_of(run, facts, tmp_path) == (*place, FIRST.gtid_executed)
    assert run.read == 1
    if dump == "gtid":
        assert checkpoint_of(run, PROMOTED, tmp_path) == (*place, FIRST.gtid_executed)


@pytest.mark.parametrize(("dump", "facts"), [("gtid", PURGED), ("position", PURGED), ("position", PROMOTED)])
def test_where_the_source_no_longer_has_it_the_baseline_is_taken_anew(
    tmp_path: Path, dump: str, facts: SourceFacts, caplog: pytest.LogCaptureFixture
) -> None:
    run = begun(tmp_path)
    run.dump = dump
    checkpoint_of(run, FIRST, tmp_path)
    run.tables = {"t": VersionStatus.NEEDS_SNAPSHOT, "new": VersionStatus.ACTIVE}
    assert checkpoint_of(run, facts, tmp_path)[2] == LATER.gtid_executed
    assert "it begins again" in caplog.text
    found = recorded_start(run.lake, "one")
    assert found is not None
    assert found.position == facts.position
    needed = needed_rows(run.lake, ["one"], lambda *_: 0)["one"]
    history = SchemaHistory("one", needed.rows)
    statuses = {name: version.status for name in ("t", "gone", "new") if (version := history.version_at("d", name, 1))}
    assert statuses == {
        "t": VersionStatus.NEEDS_SNAPSHOT,
        "gone": VersionStatus.DROPPED,
        "new": VersionStatus.ACTIVE,
    }


def test_another_server_whose_gtids_say_nothing_is_given_a_baseline_of_its_own(tmp_path: Path) -> None:
    """A connection to a wrong server was put right. MariaDB's GTIDs are numbers alone, and its tables are others."""
    run = begun(tmp_path)
    wrong = replace(FIRST, flavour=Flavour.MARIADB, version="11.8.9-MariaDB", gtid_executed="0-1-9")
    right = replace(PROMOTED, flavour=Flavour.MARIADB, version="11.8.9-MariaDB", gtid_executed="0-2-20")
    checkpoint_of(run, wrong, tmp_path)
    run.tables = {"t": VersionStatus.NEEDS_SNAPSHOT}
    assert checkpoint_of(run, right, tmp_path)[2] == "0-2-20"
    assert run.read == 2


def test_another_start_in_the_pipeline_file_begins_anew(tmp_path: Path) -> None:
    run = begun(tmp_path)
    earliest = replace(FIRST, binary_logs=(("log.000001", 500), *FIRST.binary_logs))
    run.start = "earliest"
    assert checkpoint_of(run, earliest, tmp_path) == ("", 4, "")
    with pytest.raises(PositionLost, match="start: earliest isn't possible"):
        checkpoint_of(run, LATER, tmp_path)
    run.start = "now"
    assert checkpoint_of(run, LATER, tmp_path) == ("", 4, LATER.gtid_executed)
    assert run.read == 2
