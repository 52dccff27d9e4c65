"""Healing a table version from an event: recorded logs of real servers with metadata FULL, and versions made wrong.

The truth is the version that was recorded with the log, from the server's information_schema.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.kit.decoding import segment_of_file
from tests.unit.binlog.golden import CASES, versions_of
from tidegate.binlog.format.table_map import TableMap, parse_table_map
from tidegate.binlog.index.event_index import index_pieces
from tidegate.binlog.rows.decode_plan import make_plan
from tidegate.binlog.rows.heal import HEALED, Mismatch, heal
from tidegate.errors import SchemaMismatch, Terminal
from tidegate.schema.model.columns import Index, IndexKind, TableVersion
from tidegate.schema.model.types import canonical

FULL = [case for case in CASES if case.name.endswith("metadata_full")]
NOT_KNOWN = 900


def _maps(case: Path) -> Iterator[tuple[bytes, bool, TableVersion]]:
    """Each TABLE_MAP of a case that names its columns, with the version that fits it."""
    versions = versions_of(case)
    for index in index_pieces(segment_of_file((case / "events.binlog").read_bytes())):
        mariadb = index.format.is_mariadb
        for body, name in zip(index.bodies, index.names(), strict=True):
            for version in versions:
                if (version.database, version.table) == name and _plans(body, version, mariadb=mariadb):
                    table_map = parse_table_map(body, mariadb=mariadb)
                    if table_map.columns[0].name is not None:
                        yield body, mariadb, _with_primary_key(version, table_map)
                    break


def _with_primary_key(version: TableVersion, table_map: TableMap) -> TableVersion:
    """Recorded versions have no indexes; a key that is whole must be the event's."""
    parts = tuple(version.columns[number].id for number in table_map.primary_key or ())
    assert table_map.prefixed or parts == version.key
    whole = not table_map.prefixed
    return replace(version, indexes=(Index("PRIMARY", IndexKind.PRIMARY, parts, whole),) if parts else ())


def _plans(body: bytes, version: TableVersion, *, mariadb: bool) -> bool:
    try:
        make_plan(body, version, mariadb=mariadb)
    except Terminal:
        return False
    return True


def _healed(body: bytes, wrong: TableVersion, *, mariadb: bool, nulls: bool = False) -> TableVersion:
    ids = iter(range(NOT_KNOWN, 2 * NOT_KNOWN))
    found = Mismatch(body, mariadb, 77, "b.000009", 1234)
    return heal(found, wrong, lambda: next(ids), added_are_null=nulls)


def _shape(version: TableVersion) -> tuple[object, ...]:
    """What silver and decoding depend on; the server's own words for a type may differ (int, int(11))."""
    return version.key_names, [
        (c.name, canonical(c).kind, canonical(c).arrow, canonical(c).text.members, c.charset, c.nullable)
        for c in version.columns
    ]


@pytest.mark.parametrize("case", FULL, ids=lambda case: case.name)
def test_columns_that_went_moved_or_changed_their_type_are_healed_under_their_ids(case: Path) -> None:
    rng, seen = random.Random(case.name), 0
    for body, mariadb, truth in _maps(case):
        extra = replace(truth.columns[0], id=NOT_KNOWN - 1, name="gone_since", nullable=True)
        columns = [*truth.columns, extra]
        rng.shuffle(columns)
        odd = rng.randrange(len(columns))
        swapped = "varchar(7)" if columns[odd].type != "varchar(7)" else "varchar(8)"
        columns[odd] = replace(columns[odd], type=swapped, charset="latin1", nullable=not columns[odd].nullable)
        made = _healed_or_doubt(body, replace(truth, columns=tuple(columns), key=()), mariadb=mariadb)
        if made is None:
            continue
        seen += 1
        assert _shape(made) == _shape(truth), truth.name
        assert {c.name: c.id for c in made.columns} == {c.name: c.id for c in truth.columns}
        assert (made.kind, made.commit_ts, made.version) == (HEALED, 77, truth.version + 1)
        assert _plans(body, made, mariadb=mariadb)
    assert seen, "nothing was healed"


def _healed_or_doubt(body: bytes, wrong: TableVersion, *, mariadb: bool) -> TableVersion | None:
    """None where the event leaves a doubt by itself: types that MariaDB logs as something else."""
    try:
        return _healed(body, wrong, mariadb=mariadb)
    except SchemaMismatch as error:
        if any(word in error.what for word in ("UUID", "doesn't tell all", "doesn't explain", "prefixes")):
            return None
        raise


@pytest.mark.parametrize("case", FULL, ids=lambda case: case.name)
def test_a_column_that_came_waits_for_the_server_unless_somebody_vouches_for_null(case: Path) -> None:
    seen = 0
    for body, mariadb, truth in _maps(case):
        last = truth.columns[-1]
        wrong = replace(truth, columns=truth.columns[:-1], key=())
        if not wrong.columns or last.generated or last.id in truth.key:
            continue
        with pytest.raises(SchemaMismatch, match="what rows from before have in it isn't in the log"):
            _healed(body, wrong, mariadb=mariadb)
        if last.nullable and (made := _with_nulls(body, wrong, mariadb=mariadb)) is not None:
            seen += 1
            assert _shape(made) == _shape(truth)
            assert made.columns[-1].id == NOT_KNOWN
    assert seen or not any(truth.columns[-1].nullable for _, _, truth in _maps(case))


def _with_nulls(body: bytes, wrong: TableVersion, *, mariadb: bool) -> TableVersion | None:
    try:
        return _healed(body, wrong, mariadb=mariadb, nulls=True)
    except SchemaMismatch:
        return None


def test_what_may_be_a_rename_and_an_event_without_names_are_left_to_a_person() -> None:
    case = next(case for case in CASES if case.name == "mariadb114_metadata_full")
    body, mariadb, truth = next(_maps(case))
    renamed = replace(truth, columns=(*truth.columns[:-1], replace(truth.columns[-1], name="before")))
    with pytest.raises(SchemaMismatch, match="that may be a rename"):
        _healed(body, renamed, mariadb=mariadb, nulls=True)
    bare = next(case for case in CASES if case.name == "mariadb114_metadata_minimal")
    index = next(iter(index_pieces(segment_of_file((bare / "events.binlog").read_bytes()))))
    with pytest.raises(SchemaMismatch, match="doesn't name its columns"):
        _healed(index.bodies[0], truth, mariadb=True)


def test_a_unique_key_that_stands_for_a_primary_one_is_no_disagreement() -> None:
    case = next(case for case in CASES if case.name == "mariadb114_metadata_full")
    body, mariadb, truth = next(found for found in _maps(case) if found[2].key)
    whole = Index("u", IndexKind.UNIQUE, truth.key)
    for indexes, agreed in (
        ((Index("PRIMARY", IndexKind.PRIMARY, truth.key),), True),
        ((whole,), True),
        ((Index("k", IndexKind.PLAIN, truth.key),), False),
        ((replace(whole, whole=False),), False),
        ((Index("PRIMARY", IndexKind.PRIMARY, (truth.columns[-1].id,)), whole), False),
    ):
        assert _plans(body, replace(truth, indexes=indexes), mariadb=mariadb) == agreed, indexes
