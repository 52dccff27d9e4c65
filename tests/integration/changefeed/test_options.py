"""Each option of a changefeed that changes what its files are: followed to the same silver, or refused by its name.

The options are those of TiCDC's papers on storage sinks, canal-json and csv, up to its new architecture.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.changefeed_world import ChangefeedWorld
from tests.support.changefeed_writer import ID, NULL, WORD, Cell, Change, Changefeed, number, text, ts
from tidegate.errors import ConfigError, SourceRefused, SourceUnavailable, StreamCorrupt

COLUMNS = {"id": ID, "word": WORD, "raw": {"ColumnType": "BLOB"}}
CREATE = "CREATE TABLE `shop`.`t` (`id` BIGINT NOT NULL PRIMARY KEY, `word` VARCHAR(40), `raw` BLOB)"
PARTED = f"{CREATE} PARTITION BY RANGE (id) (PARTITION a VALUES LESS THAN (10), PARTITION b VALUES LESS THAN (99))"
SILVER = [
    {"id": 1, "word": 'one, "1"\r\n|', "raw": b"\xde\xad\xbe\xef"},
    {"id": 2, "word": None, "raw": None},
    {"id": 20, "word": "NULL", "raw": b""},
]


def row(at: int, word: str | None, raw: bytes | None, *, as_hex: bool = False) -> dict[str, Cell]:
    shown = None
    if raw is not None:
        shown = Cell(raw.decode("latin-1"), raw.hex() if as_hex else base64.b64encode(raw).decode(), quoted=True)
    return {"id": number(at), "word": NULL if word is None else text(word), "raw": shown or NULL}


def written(feed: Changefeed, create: str, **where: Any) -> None:
    """Three rows stay; an UPDATE, one of the key, and a DELETE. where: Changefeed.rows' own, but for a partition."""
    as_hex, parts = bool(where.pop("as_hex", False)), where.pop("partitions", {})
    feed.ddl("shop.t", ts(1), create, 3, COLUMNS)

    def rows(key: int, *changes: Change) -> None:
        folder = "/".join(part for part in (parts.get(key > 9, ""), where.get("folder", "")) if part)
        feed.rows("shop.t", *changes, **{**where, "folder": folder})

    first = row(1, "uno", b"\x01", as_hex=as_hex)
    last = row(1, SILVER[0]["word"], SILVER[0]["raw"], as_hex=as_hex)
    gone, moved = row(3, "gone", b"\x02", as_hex=as_hex), row(5, "moved", None)
    rows(1, Change(ts(2), first), Change(ts(3), gone), Change(ts(3), moved))
    rows(1, Change(ts(4), last, first), Change(ts(5), None, gone))
    # TiCDC tells an UPDATE of a key as these two.
    rows(1, Change(ts(6), None, moved), Change(ts(6), row(2, None, None)))
    rows(20, Change(ts(7), row(20, "NULL", b"", as_hex=as_hex)))
    feed.checkpoint(ts(8))


def silver(folder: Path, feed: Changefeed, extra: str = "") -> list[dict[str, Any]]:
    world = ChangefeedWorld(folder, str(feed.path), extra=extra)
    app = world.applied(ts(8))
    assert not [state.reason for state in app.states.values() if state.state == "held"]
    return world.silver("shop", "t")


@pytest.mark.parametrize(
    ("made", "where"),
    [
        ({}, {"folder": "2022-05-19"}),
        ({}, {"folder": "2022-05"}),
        ({}, {"folder": "2022"}),
        ({"width": 20}, {}),
        ({"terminator": "\n"}, {}),
        ({}, {"writer": "0c2b9a4e-33c7-4d9e-9b9a-3f9d6a1e7c11"}),
        ({}, {"partitions": {False: "113", True: "114"}}),
        ({}, {"partitions": {False: "113", True: "114"}, "folder": "2022-05-19"}),
        ({"canal": frozenset({"content-compatible"})}, {}),
        ({"canal": frozenset({"only-output-updated-columns", "output-row-key"})}, {}),
        ({"canal": frozenset({"delete-only-output-handle-key-columns"})}, {}),
    ],
)
def test_layouts_and_forms_of_canal_json_end_in_the_same_silver(
    made: Mapping[str, Any], where: Mapping[str, Any], tmp_path: Path
) -> None:
    feed = Changefeed(tmp_path / "feed", **made)
    written(feed, PARTED if "partitions" in where else CREATE, **where)
    assert silver(tmp_path, feed) == SILVER


@pytest.mark.parametrize(
    ("csv", "said", "as_hex"),
    [
        ({}, "", False),
        ({"delimiter": "|"}, "delimiter: '|'", False),
        ({"quote": "'"}, 'quote: "\'"', False),
        ({"null": "NULL"}, "null: 'NULL'", False),
        ({}, "binary_encoding: hex", True),
        ({"old_value": True}, "old_value: true", False),
        ({"header": True}, "", False),
        ({"header": True, "old_value": True, "delimiter": ";"}, "old_value: true, delimiter: ;", False),
    ],
)
def test_forms_of_csv_end_in_the_same_silver(csv: Mapping[str, Any], said: str, as_hex: bool, tmp_path: Path) -> None:
    feed = Changefeed(tmp_path / "feed", protocol="csv", csv=csv)
    written(feed, CREATE, as_hex=as_hex)
    assert silver(tmp_path, feed, f", protocol: csv, csv: {{{said}}}") == SILVER


def by_ids(feed: Changefeed) -> None:
    """use-table-id-as-path."""
    (feed.path / "shop" / "t").rename(feed.path / "112")


def refused(folder: Path, feed: Changefeed, extra: str = "") -> str:
    world = ChangefeedWorld(folder, str(feed.path), extra=extra)
    reader = world.run().source().connect()
    reader.open(reader.first_checkpoint(None))  # type: ignore[arg-type]
    with pytest.raises((SourceRefused, SourceUnavailable, StreamCorrupt)) as raised:
        reader.receive(0.1)
    return str(raised.value)


@pytest.mark.parametrize(
    ("made", "done", "extra", "named"),
    [
        ({}, by_ids, "", "use-table-id-as-path"),
        ({"terminator": "|"}, None, "", "sink.terminator"),
        ({"protocol": "csv", "terminator": "$"}, None, ", protocol: csv", "sink.terminator"),
        ({"protocol": "csv", "csv": {"delimiter": "|@|"}}, None, ", protocol: csv", "csv.delimiter"),
        ({"protocol": "csv", "csv": {"quote": ""}}, None, ", protocol: csv", "csv.quote"),
    ],
)
def test_files_that_cannot_be_followed_are_refused_by_the_options_name(
    made: Mapping[str, Any], done: Callable[[Changefeed], None] | None, extra: str, named: str, tmp_path: Path
) -> None:
    feed = Changefeed(tmp_path / "feed", **made)
    written(feed, CREATE)
    if done is not None:
        done(feed)
    assert named in refused(tmp_path, feed, extra)


@pytest.mark.parametrize("said", ["delimiter: '|@|'", "quote: ''", "null: ''"])
def test_what_no_file_is_read_by_is_no_setting(said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"csv.{said.partition(':')[0]}"):
        ChangefeedWorld(tmp_path, str(tmp_path), extra=f", protocol: csv, csv: {{{said}}}")


@pytest.mark.parametrize(
    ("made", "create", "extra", "named"),
    [
        ({}, PARTED, "", "enable-partition-separator = true"),
        ({"protocol": "csv", "csv": {"null": "NULL"}}, CREATE, ", protocol: csv", "csv.null"),
        ({"protocol": "csv", "csv": {"null": ""}}, CREATE, ", protocol: csv", "csv.null"),
        ({"protocol": "csv", "csv": {"old_value": True}}, CREATE, ", protocol: csv", "csv.old_value"),
    ],
)
def test_a_table_whose_rows_would_be_guessed_is_held_by_the_options_name(
    made: Mapping[str, Any], create: str, extra: str, named: str, tmp_path: Path
) -> None:
    feed = Changefeed(tmp_path / "feed", **made)
    written(feed, create)
    world = ChangefeedWorld(tmp_path, str(feed.path), extra=extra)
    (held,) = [state.reason for state in world.applied(ts(8)).states.values() if state.state == "held"]
    assert named in held


def test_members_that_a_newer_ticdc_writes_are_known(tmp_path: Path) -> None:
    """ColumnElems: without them a table that the changefeed found is held for its ENUM."""
    feed = Changefeed(tmp_path / "feed")
    members = ["a", "it's", "back\\slash"]
    columns = {
        "id": ID,
        "e": {"ColumnType": "ENUM", "ColumnElems": members},
        "s": {"ColumnType": "SET", "ColumnElems": ["x", "y"]},
    }
    feed.found("shop.t", ts(0), columns)
    for at in range(1, 4):
        feed.rows("shop.t", Change(ts(at), {"id": number(at), "e": number(at), "s": number(at)}))
    feed.checkpoint(ts(8))
    found = silver(tmp_path, feed, ", all_rows: true")
    assert [(one["e"], one["s"]) for one in found] == [(members[0], "x"), (members[1], "y"), (members[2], "x,y")]
