"""What decode_segment promises beyond values: windows, versions, problems, keys, the ledger, and no wild read."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import pytest

from tests.kit.decoding import ALL_TIME, DECODERS, changed_rows, decode_both, segment, version
from tests.support.seeds import many
from tests.unit.binlog.encoding import events as e
from tidegate.binlog.format.events import EventType
from tidegate.binlog.rows.decode import decode_segment
from tidegate.commit_ts import compose
from tidegate.errors import StreamCorrupt, Terminal, UnknownEvent
from tidegate.schema.model.columns import Column, TableVersion, VersionStatus
from tidegate.segments.result import CommitSpan, DecodedSegment
from tidegate.segments.segment import Segment
from tidegate.tables import COMMIT_TS, OP, ORDINAL, SEQ, SegmentFlag

ORDERS = ("shop", "orders")
ITEMS = ("shop", "items")
TYPES, METADATA = b"\x03\x0f", b"\x50\x00"  # INT, VARCHAR of 80 bytes
COLUMNS = [Column(1, "id", "int", nullable=False), Column(2, "name", "varchar(20)", charset="utf8mb4")]
WRITE, UPDATE, DELETE = EventType.WRITE_ROWS_V1, EventType.UPDATE_ROWS_V1, EventType.DELETE_ROWS_V1


def row(number: int, name: str | None) -> bytes:
    return e.image(e.integer(number), None if name is None else e.short_text(name))


def transaction(number: int, *events: bytes, seconds: int = e.SECONDS) -> bytes:
    return b"".join([e.mariadb_gtid(number, seconds=seconds), *events, e.xid(number)])


def changes_of(kind: int, images: bytes, table: str = "orders", table_id: int = 5) -> bytes:
    return e.table_map(table_id, table, TYPES, METADATA) + e.rows(kind, table_id, 2, images)


def made(*parts: bytes, prev_commit_ts: int = 0) -> Segment:
    return segment(e.format_description(), b"".join(parts), prev_commit_ts=prev_commit_ts)


def keyed(name: tuple[str, str] = ORDERS, key: tuple[str, ...] = ("id",), **changes: Any) -> TableVersion:
    return dataclasses.replace(version(*name, COLUMNS, key), **changes)


def decoded(given: Segment, *, key: tuple[str, ...] = ("id",)) -> DecodedSegment:
    return decode_both(given, {ORDERS: [keyed(key=key)], ITEMS: [keyed(ITEMS)]}, {ORDERS: ALL_TIME, ITEMS: ALL_TIME})


def short(found: DecodedSegment) -> list[tuple[int, int, str | None]]:
    return [(r[OP], r["id"], r["name"]) for r in changed_rows(found)]


def test_insert_update_delete_become_upserts_and_deletes_in_log_order() -> None:
    found = decoded(
        made(
            transaction(1, changes_of(WRITE, row(1, "a") + row(2, None))),
            transaction(2, changes_of(UPDATE, row(1, "a") + row(1, "b"))),
            transaction(3, changes_of(DELETE, row(2, None))),
        )
    )
    assert short(found) == [(1, 1, "a"), (1, 2, None), (1, 1, "b"), (3, 2, None)]
    rows = changed_rows(found)
    assert [r[COMMIT_TS] for r in rows] == [compose(e.SECONDS * 1000) + n for n in (0, 0, 1, 2)]
    assert {r[SEQ] for r in rows} == {7}
    assert found.ledger.rows == 4


def test_key_change_deletes_the_old_key_before_it_writes_the_new() -> None:
    found = decoded(made(transaction(1, changes_of(UPDATE, row(1, "a") + row(9, "a")))))
    assert short(found) == [(3, 1, "a"), (1, 9, "a")]


def test_key_change_is_seen_in_any_column_of_the_key() -> None:
    given = made(transaction(1, changes_of(UPDATE, row(1, "a") + row(1, "b") + row(2, None) + row(2, "c"))))
    assert short(decoded(given, key=("id", "name"))) == [(3, 1, "a"), (1, 1, "b"), (3, 2, None), (1, 2, "c")]


def test_update_of_a_table_without_key_always_has_its_before_image() -> None:
    found = decoded(made(transaction(1, changes_of(UPDATE, row(1, "a") + row(1, "a")))), key=())
    assert short(found) == [(3, 1, "a"), (1, 1, "a")]


def test_ordinals_grow_in_log_order_over_all_tables() -> None:
    one, other = changes_of(WRITE, row(1, "a")), changes_of(WRITE, row(1, "a"), "items", 6)
    found = decoded(made(*(transaction(n, *pair) for n, pair in enumerate([(one, other), (other, one), (one, other)]))))
    merged = sorted(changed_rows(found), key=lambda r: r[ORDINAL])
    assert len({r[ORDINAL] for r in merged}) == 6
    assert [r[COMMIT_TS] for r in merged] == sorted(r[COMMIT_TS] for r in merged)


WINDOWS = [(0, 1, [2]), (-1, 0, [1]), (0, 0, []), (1, 9, [3]), (-1, 9, [1, 2, 3])]


@pytest.mark.parametrize(("after", "upto", "ids"), WINDOWS)
def test_window_is_open_below_and_closed_above(after: int, upto: int, ids: list[int]) -> None:
    base = compose(e.SECONDS * 1000)
    given = made(*(transaction(n, changes_of(WRITE, row(n, "x"))) for n in (1, 2, 3)))
    found = decode_both(given, {ORDERS: [keyed()]}, {ORDERS: CommitSpan(base + after, base + upto)})
    assert [r["id"] for r in changed_rows(found)] == ids


def test_each_transaction_is_decoded_under_the_version_in_force_at_its_commit_ts() -> None:
    base = compose(e.SECONDS * 1000)
    renamed = [COLUMNS[0], dataclasses.replace(COLUMNS[1], name="title")]
    later = dataclasses.replace(version(*ORDERS, renamed, ["id"], number=2), commit_ts=base + 1)
    given = made(*(transaction(n, changes_of(WRITE, row(n, "x"))) for n in (1, 2)))
    found = decode_both(given, {ORDERS: [keyed(), later]}, {ORDERS: ALL_TIME})
    assert [(c.version, c.batch.schema.names[-1], c.batch.num_rows) for c in found.changes] == [
        (1, "name", 1),
        (2, "title", 1),
    ]


def test_a_problem_holds_its_table_alone_and_quarantines_its_bytes() -> None:
    given = made(
        transaction(1, changes_of(WRITE, row(1, "a"))),
        transaction(2, changes_of(WRITE, row(2, "b"), "items", 6)),
        transaction(3, changes_of(WRITE, row(3, "c"))),
    )
    eleven = version(*ORDERS, [Column(i, f"c{i}", "int") for i in range(11)], number=3)
    found = decode_both(given, {ORDERS: [eleven], ITEMS: [keyed(ITEMS)]}, {ORDERS: ALL_TIME, ITEMS: ALL_TIME})
    assert [r["id"] for r in changed_rows(found)] == [2]
    (problem,) = found.problems
    assert (problem.error, problem.commit_ts) == ("SchemaMismatch", compose(e.SECONDS * 1000))
    assert problem.message.startswith(
        f"shop.orders at binlog.000042:{problem.pos}: event has 2 columns, schema_history version 3 has 11"
    )
    one = len(e.rows(WRITE, 5, 2, row(1, "a")))
    assert (found.ledger.quarantined_bytes, found.ledger.decoded_bytes) == (2 * one, one)


MISMATCHES = [
    ([Column(1, "id", "bigint"), COLUMNS[1]], "id is LONG"),
    ([COLUMNS[0], Column(2, "name", "varchar(30)", charset="utf8mb4")], "name is VARCHAR (80, 0)"),
    ([COLUMNS[0], Column(2, "name", "text", charset="utf8mb4")], "name is VARCHAR"),
    ([COLUMNS[0], Column(2, "name", "varchar(80)")], "no character set"),
    ([COLUMNS[0], Column(2, "name", "varchar(80)", charset="klingon")], "klingon"),
    ([COLUMNS[0], Column(2, "name", "hyperlink")], "hyperlink"),
]


@pytest.mark.parametrize(("columns", "told"), MISMATCHES)
def test_a_table_map_that_contradicts_schema_history_is_told_with_both_sides(columns: list[Column], told: str) -> None:
    given = made(transaction(1, changes_of(WRITE, row(1, "a"))))
    found = decode_both(given, {ORDERS: [version(*ORDERS, columns)]}, {ORDERS: ALL_TIME})
    assert told in found.problems[0].message


def test_rows_without_a_version_in_force_are_a_problem() -> None:
    given = made(transaction(1, changes_of(WRITE, row(1, "a"))))
    for versions in ([], [keyed(commit_ts=1 << 62)], [keyed(status=VersionStatus.DROPPED)]):
        found = decode_both(given, {ORDERS: versions}, {ORDERS: ALL_TIME})
        assert [problem.error for problem in found.problems] == ["SchemaMismatch"]
        assert found.changes == ()


def test_an_update_whose_images_both_lack_a_column_is_refused_with_the_setting_to_change() -> None:
    body = (5).to_bytes(6, "little") + b"\x01\x00" + b"\x02\x01\x01" + (b"\x00" + e.integer(1)) * 2
    given = made(transaction(1, e.table_map(5, "orders", TYPES, METADATA), e.event(UPDATE, body)))
    found = decoded(given)
    assert found.problems[0].error == "UnsupportedValue"
    assert "binlog_row_image=FULL" in found.problems[0].message


def test_a_statement_that_changes_rows_holds_the_table_it_names() -> None:
    given = made(
        transaction(1, changes_of(WRITE, row(1, "a")), e.query("/* x */ update `orders` set name = 'items'")),
        transaction(2, changes_of(WRITE, row(2, "b"), "items", 6)),
    )
    found = decoded(given)
    assert [(p.table, p.error) for p in found.problems] == [("orders", "UnsupportedValue")]
    assert [r["id"] for r in changed_rows(found)] == [2]


def refused() -> dict[str, tuple[type[Terminal], bytes]]:
    return {
        "compressed transaction of garbage": (StreamCorrupt, e.mysql_gtid(1, 10**15) + e.event(40, b"x")),
        "a compression nobody knows": (UnknownEvent, e.mysql_gtid(1, 10**15) + e.payload(e.xid(), compression=7)),
        "rows without a table map": (StreamCorrupt, transaction(1, e.rows(WRITE, 5, 2, row(1, "a")))),
        "table map of an earlier statement": (
            StreamCorrupt,
            transaction(1, changes_of(WRITE, row(1, "a")), e.rows(WRITE, 5, 2, row(1, "a"))),
        ),
        "transaction inside a transaction": (StreamCorrupt, e.mariadb_gtid(1) + transaction(2)),
        "event cut short": (StreamCorrupt, transaction(1)[:-1]),
        "event shorter than its header": (StreamCorrupt, e.event(1, b"")[:9] + b"\x05\x00\x00\x00" + bytes(20)),
    }


@pytest.mark.parametrize(
    ("payload", "error"),
    [
        (transaction(1, e.query("insert into v values (1)", "")), "UnsupportedValue"),
        (transaction(1, e.event(77, b"x")), "UnknownEvent"),
        (transaction(1) + e.event(EventType.INCIDENT, b"\x01\x00\x00"), "UnknownEvent"),
    ],
    ids=["statement without a database", "unknown event", "incident"],
)
def test_what_may_concern_any_table_holds_each_that_is_asked_for(payload: bytes, error: str) -> None:
    for decode in DECODERS:
        found = decode(made(payload), {ORDERS: [keyed()]}, {ORDERS: ALL_TIME})
        assert [(p.table, p.error) for p in found.problems] == [("orders", error)]
        assert "at binlog.000042:" in found.problems[0].message
        assert found.ledger.quarantined_bytes > 0


def test_a_part_of_rows_holds_the_tables_that_its_transaction_has_mapped() -> None:
    """MariaDB from 12.3 logs long rows in parts; the tables of other transactions go on."""
    part = e.event(EventType.MARIADB_PARTIAL_ROW_DATA, b"x")
    mapped = e.table_map(5, "orders", TYPES, METADATA)
    both = {ORDERS: [keyed()], ITEMS: [keyed(ITEMS)]}, {ORDERS: ALL_TIME, ITEMS: ALL_TIME}
    items = changes_of(WRITE, row(2, "b"), "items", 6)
    given = made(transaction(1, items), transaction(2, mapped, part, part), transaction(3, items))
    found = decode_segment(given, *both)
    assert [(p.table, p.error) for p in found.problems] == [("orders", "UnknownEvent")]
    assert "binlog_row_event_fragment_threshold" in found.problems[0].message
    assert [r["id"] for r in changed_rows(found)] == [2, 2]
    assert found.ledger.quarantined_bytes == 2 * len(part)
    # Where the transaction began is in another segment, and so may be more of its maps: any table may be meant.
    begun = dataclasses.replace(made(mapped, part, e.xid(1)), flags=SegmentFlag.OPEN_AT_START)
    cut = dataclasses.replace(begun, context=bytes(begun.context) + e.mariadb_gtid(1))
    assert [p.table for p in decode_segment(cut, *both).problems] == ["items", "orders"]


@pytest.mark.parametrize("case", refused())
def test_what_no_table_can_be_named_for_stops_the_source(case: str) -> None:
    error, payload = refused()[case]
    for decode in DECODERS:
        with pytest.raises(error) as caught:
            decode(made(payload), {ORDERS: [keyed()]}, {ORDERS: ALL_TIME})
        assert "binlog.000042:" in str(caught.value)


def test_an_unknown_event_flagged_ignorable_is_ignored_by_name() -> None:
    odd = e.event(77, b"x", flags=0x80)
    found = decoded(made(transaction(1, odd)))
    assert found.ledger.ignored["ignorable"] == len(odd)


@pytest.mark.parametrize("kind", [EventType.WRITE_ROWS_V0, EventType.UPDATE_ROWS_V0, EventType.DELETE_ROWS_V0])
def test_rows_of_a_layout_that_no_supported_server_writes_hold_their_table(kind: int) -> None:
    old = e.event(kind, (5).to_bytes(6, "little") + b"\x01\x00" + b"\x02\x03" + row(1, "a"))
    other = transaction(2, changes_of(WRITE, row(2, "b"), "items", 6))
    found = decoded(made(transaction(1, e.table_map(5, "orders", TYPES, METADATA), old), other))
    assert [(p.table, p.error) for p in found.problems] == [("orders", "UnsupportedValue")]
    assert found.ledger.quarantined_bytes == len(old)
    assert [r["id"] for r in changed_rows(found)] == [2]


def test_a_segment_cut_inside_a_transaction_decodes_alone_to_the_same_changes() -> None:
    head, body = e.mariadb_gtid(1), changes_of(WRITE, row(1, "a"))
    mapped = e.table_map(5, "orders", TYPES, METADATA)
    first, second = e.rows(WRITE, 5, 2, row(2, "b"), end=False), e.rows(WRITE, 5, 2, row(3, "c"))
    parts = [transaction(9), head, body, mapped, first, second, e.xid()]
    whole = decoded(made(*parts))
    tail = segment(
        e.format_description() + head + mapped,
        second + e.xid(),
        start_pos=4 + sum(map(len, parts[:5])),
        prev_commit_ts=compose(e.SECONDS * 1000),
    )
    (last,) = changed_rows(decoded(tail))
    assert (last["id"], last[COMMIT_TS]) == (3, changed_rows(whole)[-1][COMMIT_TS])


def test_every_checksum_is_verified_when_asked() -> None:
    given = made(transaction(1, changes_of(WRITE, row(1, "a"))))
    DECODERS[0](given, {}, {}, verify_checksums=True)
    broken = bytearray(given.payload)
    broken[-5] ^= 1
    with pytest.raises(StreamCorrupt, match="checksum"):
        DECODERS[0](dataclasses.replace(given, payload=bytes(broken)), {}, {}, verify_checksums=True)


def test_many_more_rows_than_estimated_are_still_all_decoded() -> None:
    columns = [Column(1, "id", "int"), *(Column(i, f"c{i}", "decimal(38,0)") for i in range(2, 12))]
    nulls = e.image(e.integer(1), *([None] * 10))
    mapped = e.table_map(5, "orders", b"\x03" + b"\xf6" * 10, b"\x26\x00" * 10)
    given = made(transaction(1, mapped, e.rows(WRITE, 5, 11, nulls * 5000)))
    found = DECODERS[0](given, {ORDERS: [version(*ORDERS, columns, ["id"])]}, {ORDERS: ALL_TIME})
    assert found.ledger.rows == 5000
    assert found.changes[0].batch.column("c7").null_count == 5000


def damage(r: random.Random, payload: bytes) -> bytes:
    damaged = bytearray(payload)
    for _ in range(r.randrange(1, 4)):
        damaged[r.randrange(len(damaged))] = r.choice([0, 1, 127, 128, 255, r.randrange(256)])
    return bytes(damaged)


@pytest.mark.parametrize("seed", range(8))
def test_damaged_bytes_give_an_error_or_the_reference_decoders_answer_and_never_a_wild_read(seed: int) -> None:
    r = random.Random(seed)
    given = made(
        transaction(1, changes_of(WRITE, row(1, "a" * 20) + row(2, None))),
        transaction(2, changes_of(UPDATE, row(1, "a") + row(7, "b")), changes_of(DELETE, row(2, "é"), "items", 6)),
    )
    versions = {ORDERS: [keyed()], ITEMS: [keyed(ITEMS)]}
    windows = {ORDERS: ALL_TIME, ITEMS: ALL_TIME}
    for _ in range(many(200, 10_000)):
        broken = dataclasses.replace(given, payload=damage(r, bytes(given.payload)))
        outcomes = []
        for decode in DECODERS:
            try:
                found = decode(broken, versions, windows)
                outcomes.append((found.ledger, [(p.table, p.error) for p in found.problems], changed_rows(found)))
            except Terminal as error:
                outcomes.append(type(error))
        assert outcomes[0] == outcomes[1]
