"""Compiled code makes of any table's rows what the slow decoder makes of them, value by value."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kit.tidb import encode
from tests.kit.tidb.described import DECODERS, NAME, TABLE, Col, Decode, Made, Rows, made, segment, table, versions
from tests.kit.tidb.replay.recording import Recording
from tidegate import tables
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.model.types import ZeroDates
from tidegate.segments.result import CommitSpan, Known
from tidegate.tidb.codec.protobuf import bytes_field, number_field, written_varint
from tidegate.tidb.jobs import INTEGERS, UNSIGNED, Job, TableInfo, Tp
from tidegate.tidb.records.payload import BinlogType, Mutation, binlog_of
from tidegate.tidb.rows import row_images as images
from tidegate.tidb.rows.decode import Pieces, decode_in_pieces
from tidegate.tidb.values.cells import Moment, packed

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "tidb"
INT = Col(Tp.LONG)
TEXT = Col(Tp.VARCHAR, length=40, charset="utf8mb4")
DECIMAL = Col(Tp.DECIMAL, length=12, digits=2)
decoders = pytest.mark.parametrize("decode", DECODERS)


def prewrite(start_ts: int, *changes: tuple[Mutation, bytes]) -> bytes:
    return encode.binlog(BinlogType.PREWRITE, start_ts, value=encode.mutations(TABLE, *changes), key=b"k")


def inserted(handle: bytes, cells: dict[int, Any]) -> tuple[Mutation, bytes]:
    return Mutation.INSERT, handle + encode.pairs(cells)


def updated(before: dict[int, Any], after: dict[int, Any]) -> tuple[Mutation, bytes]:
    return Mutation.UPDATE, encode.pairs(before) + encode.pairs(after)


def changes(decode: Decode, info: TableInfo, *rows: tuple[Mutation, bytes]) -> list[tuple[Any, ...]]:
    found = made(decode, segment(prewrite(100, *rows)), versions(info), {100: 110})
    assert not found.problems
    assert not found.raised
    return [(row[tables.OP], *list(row.values())[4:]) for row in next(iter(found.rows.values()), [])]


def unsigned(value: int) -> bytes:
    """As TiDB writes dates, members and bits, however small the number is."""
    return b"\x09" + written_varint(value)


# --- what a row says -----------------------------------------------------------------------------------------


@decoders
def test_a_table_without_a_key_has_an_update_as_a_delete_and_a_row(decode: Decode) -> None:
    ops = changes(decode, table([INT]), updated({1: 5}, {1: 5}))
    assert ops == [(3, 5), (1, 5)]


@decoders
@pytest.mark.parametrize(
    ("before", "after", "rows"),
    [
        ({1: 5, 2: 1}, {1: 5, 2: 2}, 1),
        ({1: 5, 2: 1}, {1: 6, 2: 1}, 2),
        ({1: 5, 2: None}, {1: 5, 2: 1}, 1),
    ],
)
def test_an_update_is_one_row_unless_its_key_changes(decode: Decode, before: Any, after: Any, rows: int) -> None:
    assert len(changes(decode, table([INT, INT], [0]), updated(before, after))) == rows


@decoders
@pytest.mark.parametrize(
    ("column", "one", "other"),
    [(Col(Tp.DOUBLE), -0.0, 0.0), (DECIMAL, Decimal("1.5"), Decimal("1.50")), (DECIMAL, Decimal("-0.00"), Decimal(0))],
)
def test_a_key_in_other_bytes_is_the_same_key(decode: Decode, column: Col, one: Any, other: Any) -> None:
    found = changes(decode, table([column, INT], [0]), updated({1: one, 2: 1}, {1: other, 2: 2}))
    assert [row[2] for row in found] == [2]


@decoders
def test_the_handle_stands_for_a_key_that_the_row_leaves_out(decode: Decode) -> None:
    by_number = table([Col(Tp.LONGLONG, flag=UNSIGNED), INT], [0], Rows.BY_NUMBER)
    assert changes(decode, by_number, inserted(encode.datum(-1), {2: 7})) == [(1, Decimal(2**64 - 1), 7)]
    binary = Col(Tp.STRING, length=12)
    by_key = table([binary, INT, TEXT], [0, 1], Rows.BY_KEY)
    head = encode.handle(b"eight by") + encode.handle(-3)
    assert changes(decode, by_key, inserted(head, {3: b"x"})) == [(1, b"eight by\0\0\0\0", -3, "x")]


@decoders
def test_a_text_key_is_what_the_row_says_and_not_its_sort_key(decode: Decode) -> None:
    by_key = table([TEXT, INT], [0], Rows.BY_KEY)
    assert changes(decode, by_key, inserted(encode.handle(b"\0A"), {1: b"a", 2: 1})) == [(1, "a", 1)]


@decoders
def test_a_row_that_lacks_a_column_has_its_origin_default(decode: Decode) -> None:
    columns = [INT, Col(Tp.LONG, default="7"), Col(Tp.VARCHAR, length=9, charset="utf8mb4", default="né"), INT]
    info = table(columns, [0], Rows.BY_NUMBER)
    assert changes(decode, info, inserted(encode.datum(1), {})) == [(1, 1, 7, "né", None)]
    assert changes(decode, info, inserted(encode.datum(1), {2: None, 3: b""})) == [(1, 1, None, "", None)]


@decoders
def test_columns_are_known_by_id_and_not_by_place(decode: Decode) -> None:
    info = table([INT, TEXT, INT], [0], Rows.BY_NUMBER, ids=[9, 2, 5])
    row = encode.datum(5) + encode.datum(1) + encode.datum(2) + encode.datum(b"b") + encode.datum(77) + encode.datum(0)
    assert changes(decode, info, (Mutation.INSERT, encode.datum(3) + row)) == [(1, 3, "b", 1)]


@decoders
def test_a_virtual_column_is_computed(decode: Decode) -> None:
    info = table([INT, Col(Tp.LONG, generated="`c0` * 2")], [0], Rows.BY_NUMBER)
    assert changes(decode, info, inserted(encode.datum(4), {})) == [(1, 4, 8)]


@decoders
def test_what_comes_twice_counts_once_and_what_nobody_wants_not_at_all(decode: Decode) -> None:
    row = inserted(encode.datum(1), {})
    payloads = [prewrite(100, row), prewrite(100, row), prewrite(101, row), prewrite(102, row)]
    payloads += [encode.binlog(BinlogType.COMMIT, 100, 110), encode.ddl(BinlogType.PREWRITE, 103, 0, 5, b"x")]
    found = made(decode, segment(*payloads), versions(table([INT], [0], Rows.BY_NUMBER)), {100: 110, 102: 5})
    assert [row[tables.COMMIT_TS] for row in found.rows[1]] == [110]


@decoders
@pytest.mark.parametrize("zero_dates", list(ZeroDates))
def test_a_date_that_no_calendar_has_is_null_or_a_problem(decode: Decode, zero_dates: ZeroDates) -> None:
    row = encode.datum(1) + encode.datum(2) + unsigned(packed(Moment(2024, 2, 31)))
    info = table([INT, Col(Tp.DATE)], [0], Rows.BY_NUMBER)
    one = segment(prewrite(100, (Mutation.INSERT, row)))
    found = made(decode, one, versions(info), {100: 110}, CommitSpan(20, 2000, zero_dates))
    if zero_dates is ZeroDates.NULL:
        assert [row["c1"] for row in found.rows[1]] == [None]
        assert found.ledger[-1] == 1
    else:
        assert "holds a date that no calendar has" in found.problems[0]
        assert "2024-02-31" not in found.problems[0], "it may be nobody's to see"


@decoders
@pytest.mark.parametrize(("day", "text"), [(0, "0000-00-00"), (packed(Moment(2024, 0, 0)), "2024-00-00")])
def test_a_date_in_a_key_that_no_calendar_has_holds_its_table(decode: Decode, day: int, text: str) -> None:
    """NULL would stand for all such rows."""
    row = encode.datum(1) + encode.datum(1) + unsigned(day) + encode.pairs({2: 1})
    one = segment(prewrite(100, (Mutation.INSERT, row)))
    found = made(decode, one, versions(table([Col(Tp.DATE), INT], [0])), {100: 110})
    assert f"column c0 of the key holds {text}" in found.problems[0]


@decoders
def test_a_row_that_fits_no_table_holds_it_from_there_and_says_where(decode: Decode) -> None:
    good = prewrite(100, inserted(encode.datum(1), {2: 1}))
    bad = prewrite(101, (Mutation.INSERT, encode.datum(2) + encode.datum(2)))
    one = segment(good, bad, prewrite(102, inserted(encode.datum(3), {2: 1})))
    found = made(decode, one, versions(table([INT, INT], [0], Rows.BY_NUMBER)), {100: 110, 101: 111, 102: 112})
    assert f"at {len(good) + 8}: " in found.problems[0]
    assert found.ledger[1] == len(good) + 8


@decoders
def test_rows_of_another_table_that_nobody_can_read_hold_up_nothing(decode: Decode) -> None:
    strange = [(Mutation.UPDATE, b"\x08\x02\x7f\x08\x02\x7f"), (Mutation.DELETE, b"\x08\x04\x7f")]
    value = encode.mutations(TABLE + 1, *strange) + encode.mutations(TABLE, inserted(encode.datum(1), {2: 5}))
    one = segment(encode.binlog(BinlogType.PREWRITE, 100, value=value, key=b"k"))
    found = made(decode, one, versions(table([INT, INT], [0], Rows.BY_NUMBER)), {100: 110})
    assert ([row["c1"] for row in found.rows[1]], found.problems, found.raised) == ([5], (), "")


@decoders
def test_a_type_of_mutation_that_is_not_known_is_an_error(decode: Decode) -> None:
    body = number_field(1, TABLE) + b"\x12\x02\x08\x02" + number_field(7, 2)
    one = segment(encode.binlog(BinlogType.PREWRITE, 100, value=bytes_field(2, body)))
    assert "mutation of kind 2" in made(decode, one, versions(table([INT])), {100: 110}).raised


def test_a_piece_that_was_read_by_row_has_the_schema_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.tidb.rows.decode.TIDB_PIECE_BYTES", 1)
    by_row, seen = Pieces._by_row, list[int]()
    monkeypatch.setattr(Pieces, "_by_row", lambda self, mine, ledger: seen.append(1) or by_row(self, mine, ledger))
    one, other = {1: 1, 2: Decimal("1.50")}, {2: Decimal("2.50"), 1: 1}  # no TiDB names columns in two orders
    whole = segment(prewrite(100, updated(one, one)), prewrite(101, updated(one, other)))
    mine = versions(table([INT, DECIMAL], [0], Rows.BY_NUMBER))
    answers = Known(answers={100: 110, 101: 111})
    parts = list(decode_in_pieces(whole, {NAME: mine}, {NAME: CommitSpan(20, 2000)}, known=answers))
    batches = [change.batch for part in parts for change in part.changes]
    assert (len(parts), len(seen)) == (2, 1)
    assert [batch.column("c1").to_pylist() for batch in batches] == [[Decimal("1.50")], [Decimal("2.50")]]
    assert batches[0].schema == batches[1].schema


def test_a_piece_of_rows_that_name_few_of_many_columns_ends_by_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.tidb.rows.decode.TIDB_PIECE_CELLS_BYTES", 8 * 300)
    info = table([INT] * 100, [0], Rows.BY_NUMBER)
    rows = [
        [inserted(encode.datum(10 * n + at), {}) for at in range(count)] for n, count in enumerate((1, 1, 1, 4, 2, 1))
    ]
    whole = segment(*(prewrite(100 + n, *mine) for n, mine in enumerate(rows)))
    answers = Known(answers={100 + n: 200 + n for n in range(len(rows))})
    parts = list(decode_in_pieces(whole, {NAME: versions(info)}, {NAME: CommitSpan(20, 2000)}, known=answers))
    assert [part.ledger.rows for part in parts] == [3, 3, 1, 3]


# --- any table, any rows -------------------------------------------------------------------------------------


def number(bits: int, *, sign: bool) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if sign else st.integers(0, 2**bits - 1)


def decimals(length: int, digits: int) -> st.SearchStrategy[Decimal]:
    whole = st.integers(-(10**length) + 1, 10**length - 1)
    return whole.map(lambda value: Decimal((int(value < 0), tuple(map(int, str(abs(value)))), -digits)))


moments = st.builds(
    lambda *at: packed(Moment(*at)),
    st.sampled_from([0, 1, 1970, 2024, 9999]),
    st.integers(0, 12),
    st.integers(0, 31),
    st.integers(0, 23),
    st.integers(0, 59),
    st.integers(0, 59),
    st.sampled_from([0, 1, 999999]),
)
texts = st.text(max_size=30).map(str.encode)
trees = st.one_of(
    st.integers(-9, 9), st.text(max_size=5), st.lists(st.booleans()), st.dictionaries(st.text(max_size=3), st.none())
)
Written = st.SearchStrategy[bytes]


def written(values: st.SearchStrategy[Any]) -> Written:
    return values.map(encode.datum)


_DECIMALS = ((12, 2), (38, 0), (38, 38), (5, 5), (65, 30))
_SIXTY_FOUR = tuple(f"m{n}" for n in range(64))
_TYPES: list[tuple[Col, Written]] = [
    *((Col(tp), written(number(bits, sign=True))) for tp, bits in INTEGERS.items()),
    *((Col(tp, flag=UNSIGNED), number(bits, sign=False).map(unsigned)) for tp, bits in INTEGERS.items()),
    (Col(Tp.YEAR, length=4), written(st.one_of(st.just(0), st.integers(1901, 2155)))),
    (Col(Tp.FLOAT, digits=-1), written(st.floats(width=32, allow_nan=False))),
    (Col(Tp.DOUBLE, digits=-1), written(st.floats(allow_nan=False))),
    *((Col(Tp.DECIMAL, length=n, digits=d), written(decimals(n, d))) for n, d in _DECIMALS),
    (Col(Tp.DATE), moments.map(unsigned)),
    *((Col(tp, digits=d), moments.map(unsigned)) for tp in (Tp.DATETIME, Tp.TIMESTAMP) for d in (0, 6)),
    *((Col(Tp.TIME, digits=d), written(st.integers(-838 * 3600 * 10**9, 838 * 3600 * 10**9))) for d in (0, 3, 6)),
    *((Col(Tp.BIT, length=n), number(n, sign=False).map(unsigned)) for n in (1, 9, 64)),
    (Col(Tp.ENUM, charset="utf8mb4", members=("a", "é", "")), st.integers(0, 3).map(unsigned)),
    (Col(Tp.SET, charset="utf8mb4", members=("a", "b", "c")), st.integers(0, 7).map(unsigned)),
    (Col(Tp.SET, charset="utf8mb4", members=_SIXTY_FOUR), number(64, sign=False).map(unsigned)),
    *((Col(tp, length=200, charset="utf8mb4"), written(texts)) for tp in (Tp.VARCHAR, Tp.STRING, Tp.BLOB)),
    (Col(Tp.VARCHAR, length=200, charset="gbk"), written(texts)),
    *((Col(tp, length=40), written(st.binary(max_size=40))) for tp in (Tp.VARCHAR, Tp.STRING, Tp.LONGBLOB)),
    (Col(Tp.JSON), written(trees.map(encode.json_value))),
]  # fmt: skip
_NO_KEY = {Tp.JSON, Tp.ENUM, Tp.SET}


@st.composite
def cases(draw: st.DrawFn) -> tuple[TableInfo, list[bytes], dict[int, int]]:
    """A table and transactions on it: rows that lack columns, rows in which a datum is some other's."""
    chosen = draw(st.lists(st.sampled_from(_TYPES), min_size=1, max_size=8))
    columns = [column for column, _ in chosen]
    rows = draw(st.sampled_from(list(Rows)))
    able = [at for at, column in enumerate(columns) if column.tp not in _NO_KEY]
    key = draw(st.lists(st.sampled_from(able), max_size=2, unique=True)) if able else []
    if rows is Rows.BY_NUMBER:
        columns, chosen, key = [Col(Tp.LONGLONG), *columns], [_TYPES[4], *chosen], [0]
    rows = rows if key else Rows.BY_ID
    info = table(columns, key, rows)
    values = [st.one_of(strategy, st.just(b"\x00")) for _, strategy in chosen]

    def cells(places: list[int]) -> bytes:
        row = b"".join(encode.datum(at + 1) + draw(values[at]) for at in places)
        if draw(st.integers(0, 60)) == 0:
            row += encode.datum(draw(st.integers(1, 9))) + draw(draw(st.sampled_from(_TYPES))[1])
        return row

    def change() -> tuple[Mutation, bytes]:
        kind = draw(st.sampled_from(list(Mutation)))
        named = [at for at in range(len(values)) if draw(st.integers(0, 9))]
        if kind is Mutation.DELETE:
            return kind, cells(named) or b"\x00"
        if kind is Mutation.UPDATE:
            before = cells(named)
            return kind, before + (cells(named) if draw(st.booleans()) else before)
        head = [draw(values[at]) for at in key] if rows is Rows.BY_KEY else [encode.datum(draw(number(64, sign=True)))]
        return kind, b"".join(head) + (cells(named) or b"\x00")

    def told() -> list[tuple[Mutation, bytes]]:
        """Or twice, as of rows that TiDB divides anew; of an UPDATE then by a DELETE of what it found."""
        kind, row = change()
        again = (kind, row)
        if kind is Mutation.UPDATE and draw(st.booleans()):
            again = (Mutation.DELETE, row[: len(row) // 2])
        return [(kind, row), again] if draw(st.integers(0, 3)) == 0 else [(kind, row)]

    payloads = [
        prewrite(100 + n, *(one for _ in range(draw(st.integers(0, 4))) for one in told()))
        for n in range(draw(st.integers(1, 4)))
    ]
    return info, payloads, {100 + n: 200 + n for n in range(len(payloads))}


@settings(max_examples=150, deadline=None)
@given(cases(), st.sampled_from(list(ZeroDates)))
def test_compiled_code_makes_what_the_slow_decoder_makes(case: Any, zero_dates: ZeroDates) -> None:
    info, payloads, answers = case
    one, mine, span = segment(*payloads), versions(info), CommitSpan(20, 2000, zero_dates)
    assert_same(*(made(decode, one, mine, answers, span) for decode in DECODERS))


@settings(max_examples=80, deadline=None)
@given(cases(), st.data())
def test_bytes_that_are_broken_are_told_the_same_way(case: Any, data: st.DataObject) -> None:
    info, payloads, answers = case
    broken = [bytearray(one) for one in payloads]
    one = data.draw(st.sampled_from(broken))
    one[data.draw(st.integers(0, len(one) - 1))] = data.draw(st.integers(0, 255))
    whole, mine = segment(*map(bytes, broken)), versions(info)
    assert_same(*(made(decode, whole, mine, answers) for decode in DECODERS))


@settings(max_examples=50, deadline=None)
@given(cases())
def test_images_are_the_same_too(case: Any) -> None:
    info, payloads, answers = case
    one, mine = segment(*payloads), versions(info)
    given_, slow = (_images(one, mine, answers, compiled=compiled) for compiled in (True, False))
    assert repr(given_) == repr(slow)


def _images(one: Any, mine: list[TableVersion], answers: dict[int, int], *, compiled: bool) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        if not compiled:
            patch.setattr(images, "walk_of", lambda _payload: None)
        try:
            parts = images.row_images(one, {NAME: mine}, {NAME: CommitSpan(20, 2000)}, known=Known(answers=answers))
            return [
                (row, int(at), part.transactions[row[tables.COMMIT_TS]])
                for part in parts
                for row, at in zip(part.batch.to_pylist(), part.positions, strict=True)
            ]
        except Exception as error:  # noqa: BLE001 - both have to raise it
            return f"{type(error).__name__}: {error}"


def assert_same(one: Made, other: Made) -> None:
    assert repr(one.rows) == repr(other.rows)
    assert (one.problems, one.ledger, one.raised) == (other.problems, other.ledger, other.raised)


# --- what a real one wrote -----------------------------------------------------------------------------------


def recorded(case: Path) -> tuple[Any, dict[tuple[str, str], list[TableVersion]], dict[int, int]]:
    """A recording as one segment; each table's versions by its id alone."""
    payloads = [payload for _, payload in Recording(case).payloads()]
    binlogs = [binlog_of(payload) for payload in payloads]
    answers = {one.start_ts: one.commit_ts for one in binlogs if one.tp is BinlogType.COMMIT}
    found: dict[tuple[str, str], list[TableVersion]] = {}
    for line in (case / "ddl_jobs.jsonl").read_text().splitlines():
        job, at = Job.from_text(line), (json.loads(line)["binlog"] or {}).get("FinishedTS") or 1
        for info in [*([job.table] if job.table else []), *job.tables]:
            mine = found.setdefault(("d", f"t{info.id}"), [])
            if info.is_base and (not mine or mine[-1].commit_ts < at):
                mine += _as_version(info, at, len(mine) + 1)
    return segment(*payloads), found, answers


def _as_version(info: TableInfo, at: int, number: int) -> list[TableVersion]:
    return [replace(one, version=number, commit_ts=at, table=f"t{info.id}") for one in versions(info)]


@pytest.mark.parametrize("case", sorted(path.parent.name for path in GOLDEN.glob("*/binlog.bin")))
def test_recorded_rows_are_the_same_by_both(case: str) -> None:
    one, found, answers = recorded(GOLDEN / case)
    windows = {name: CommitSpan(0, 1 << 62) for name in found}
    rows = []
    for decode in DECODERS:
        parts = list(decode(one, found, windows, known=Known(answers=answers)))
        assert not [problem for part in parts for problem in part.problems]
        rows.append([(c.table, c.version, row) for part in parts for c in part.changes for row in c.batch.to_pylist()])
    assert len(rows[0]) > 3
    assert repr(sorted(rows[0], key=str)) == repr(sorted(rows[1], key=str))
