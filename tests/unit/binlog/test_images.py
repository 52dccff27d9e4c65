"""Images that lack columns, and JSON differences: any bytes, the kernel and its slow twin agree on them.

In:  rows events made by hand, whole or with bytes changed.
Out: the same rows or both refused, by a typed error; never a crash: kernels read addresses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.reference.decode import reference_batch, reference_images
from tests.reference.json_document import reference_patched_text
from tests.support.seeds import many
from tests.unit.binlog.encoding import events as e
from tests.unit.binlog.encoding.json_values import binary_json, json_shown
from tests.unit.binlog.encoding.types import prefixed, wire_type
from tests.unit.binlog.images import assert_alike
from tests.unit.binlog.logs import Dress, Table
from tests.unit.binlog.type_cells import TYPES
from tidegate.binlog.rows.batch import BareDelete, RowsBatch, decode_batch, decode_images
from tidegate.binlog.rows.decode_plan import Plan, make_plan
from tidegate.columnar.decoded import Images, RowsError
from tidegate.columnar.json_document import patched_json_text, read_path
from tidegate.columnar.kernel import layout as L  # noqa: N812
from tidegate.errors import DecodeError
from tidegate.tables import OP

SETTINGS: dict[str, Any] = {"deadline": None, "database": None, "suppress_health_check": list(HealthCheck)}
UPDATES = (L.OP_UPDATE, L.OP_PARTIAL_UPDATE)
DOCUMENTS: list[Any] = [
    {"a": 1, "k": {"b": [1, 2]}, "x y": [0, {}]}, [1, [2, {"b": None}], "é"], "text", {}, [], {"a": 1.5, 'q"': True},
    {"k": {f"key{i}": i * 1000 for i in range(40)}}, list(range(300)),
]  # fmt: skip
PATHS = ["$.a", "$[0]", "$[1]", "$.k.b", "$.k.b[1]", '$."x y"[1]', "$[last]", "$[last-1]", '$."q\\""', "$.k.key7", "$"]
PATHS += ["$[9]", "$[1][0]", "$[1][1].b", "$.é", "$..", "$[", "a", "$.*", "$[1 to 2]", '$."', "$[99999999999]"]


def packed_bytes(data: bytes) -> bytes:
    return e.packed(len(data)) + data


@st.composite
def differences(draw: st.DrawFn) -> bytes:
    made = b""
    for _ in range(draw(st.integers(0, 3))):
        operation = draw(st.sampled_from([0, 0, 1, 1, 2, 2, 3]))
        made += bytes([operation]) + packed_bytes(draw(st.sampled_from(PATHS)).encode())
        if operation != 2:
            made += packed_bytes(binary_json(draw(st.sampled_from(DOCUMENTS))))
    return made


def bits(flags: list[bool]) -> bytes:
    return sum(1 << i for i, flag in enumerate(flags) if flag).to_bytes((len(flags) + 7) // 8, "little")


@dataclass(frozen=True)
class Given:
    """data: events behind their post-headers, one after the other. events: as the kernel takes them."""

    plan: Plan
    data: bytes
    events: list[tuple[int, int, int]]

    def array(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        made = np.zeros((len(self.events), L.EVENT_WORDS), np.int64)
        made[:, [L.EVENT_START, L.EVENT_END, L.EVENT_OP]] = self.events
        made[:, L.EVENT_COMMIT_TS] = range(len(made))
        return made


# Groups of a decimal that hold more than their digits can't be said apart here: the twin prints them as they are.
UNCHECKED = tuple(name for name in TYPES if name.startswith("decimal"))


@st.composite
def logs(draw: st.DrawFn, without: tuple[str, ...] = ()) -> Given:
    drawn = [name for name in sorted(TYPES) if name not in without]
    names = draw(st.lists(st.sampled_from([*drawn, *["json"] * 12]), min_size=1, max_size=9))
    cells = [TYPES[name].cells for name in names]
    documents = [i for i, name in enumerate(names) if name == "json"]
    for i in documents:
        cells[i] = st.sampled_from([(prefixed(4)(binary_json(d)), json_shown(d)) for d in DOCUMENTS])
    pools = [draw(st.lists(cell, min_size=1, max_size=3)) for cell in cells]
    key = draw(st.lists(st.integers(0, len(names) - 1), unique=True, max_size=2))
    key = [i for i in key if all(value is not None for _, value in pools[i])]
    table = Table("t", tuple(TYPES[name].wire for name in names), tuple(key))

    def image(present: list[bool], partial: dict[int, bytes]) -> bytes:
        nulls, values = [], b""
        for i in (i for i, there in enumerate(present) if there):
            null = draw(st.integers(0, 4)) == 0
            nulls.append(null)
            if not null:
                values += partial[i] if i in partial else draw(st.sampled_from(pools[i]))[0]
        return bits(nulls) + values

    data, events = b"\xaa" * 5, []
    for _ in range(draw(st.integers(1, 4))):
        op = draw(st.sampled_from([L.OP_WRITE, L.OP_UPDATE, L.OP_DELETE, L.OP_PARTIAL_UPDATE]))
        one = [draw(st.integers(0, 3)) > 0 or i in key for i in range(len(names))]
        other = [draw(st.booleans()) or not there for there in one]
        if draw(st.integers(0, 9)) == 0:
            one = other = draw(st.lists(st.booleans(), min_size=len(names), max_size=len(names)))
        start = len(data)
        data += e.packed(len(names)) + bits(one) + (bits(other) if op in UPDATES else b"")
        for _ in range(draw(st.integers(1, 4))):
            data += image(one, {})
            partial: dict[int, bytes] = {}
            if op == L.OP_PARTIAL_UPDATE:
                options = draw(st.integers(0, 1))
                data += bytes([options])
                if options:
                    some = [i for i in documents if draw(st.booleans())]
                    data += bits([i in some for i in documents])
                    partial = {i: (len(d := draw(differences()))).to_bytes(4, "little") + d for i in some}
            if op in UPDATES:
                data += image(other, partial)
        events.append((start, len(data), op))
    left_out = frozenset(column.silver for column in table.version.columns if draw(st.integers(0, 3)) == 0)
    body = table.map_event(9, Dress(checksum=False, metadata=""))[27:]
    return Given(make_plan(body, table.version, left_out=left_out), data, events)


def outcome(decode: Callable[..., RowsBatch | Images], made: Given) -> RowsBatch | Images | None:
    """What is decoded, or None for a typed refusal."""
    try:
        return decode(np.frombuffer(made.data, np.uint8), made.array(), made.plan, 3)
    except RowsError:
        return None
    except pa.ArrowInvalid:
        if decode in SLOW:
            raise
        return None  # the twin makes Python's decimals, which may have too many digits for Arrow


def agree(made: Given) -> tuple[bool, bool]:
    """Whether there are net rows, and images."""
    net, images = outcome(decode_batch, made), outcome(decode_images, made)
    slow_net, slow_images = outcome(reference_batch, made), outcome(reference_images, made)
    assert (net is None, images is None) == (slow_net is None, slow_images is None)
    if net is not None and slow_net is not None:
        net.rows.validate(full=True)
        assert str(net.rows.to_pylist()) == str(slow_net.rows.to_pylist())  # NaN never equals itself
        assert net.null_dates == slow_net.null_dates
    if isinstance(images, Images) and isinstance(slow_images, Images):
        assert_alike(images, slow_images)
    return net is not None, images is not None


@pytest.mark.long
def test_the_kernel_and_its_twin_agree_on_images_that_lack_columns() -> None:
    found: list[tuple[bool, bool]] = []

    @settings(max_examples=many(60, 5000), **SETTINGS)
    @given(made=logs())
    def collect(made: Given) -> None:
        found.append(agree(made))

    collect()
    assert sum(images for _, images in found) > len(found) // 6  # most examples say something
    assert sum(net for net, _ in found) > len(found) // 20


@pytest.mark.long
@settings(max_examples=many(100, 20000), **SETTINGS)
@given(data=st.data())
def test_changed_bytes_are_decoded_alike_or_refused(data: st.DataObject) -> None:
    made = data.draw(logs(UNCHECKED))
    raw = bytearray(made.data)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at] = data.draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFB, 0xFC, 0xFF, raw[at] ^ 1, raw[at] ^ 0x10]))
    events = made.events
    if data.draw(st.booleans()):
        start, end, op = events[-1]
        events = [*events[:-1], (start, data.draw(st.integers(start, end)), op)]
    changed = Given(made.plan, bytes(raw), events)
    for decode in (decode_batch, decode_images):
        fast, slow = outcome(decode, changed), outcome(SLOW[decode], changed)
        if fast is not None and slow is not None:
            assert str(fast.rows.to_pylist()) == str(slow.rows.to_pylist())


SLOW: dict[Callable[..., RowsBatch | Images], Callable[..., RowsBatch | Images]] = {
    decode_batch: reference_batch,
    decode_images: reference_images,
}


# --- JSON differences ------------------------------------------------------------------------------------------


def patch(document: Any, *changes: tuple[int, str, Any]) -> str:
    """By both readers."""
    made = b""
    for operation, path, value in changes:
        made += bytes([operation]) + packed_bytes(path.encode())
        made += b"" if operation == 2 else packed_bytes(binary_json(value))
    whole = binary_json(document)
    text = patched_json_text(b"\xff" + len(whole).to_bytes(4, "little") + whole + made)
    assert text == reference_patched_text(whole, made)
    return text


REPLACE, INSERT, REMOVE = 0, 1, 2


@pytest.mark.parametrize(
    ("document", "changes", "text"),
    [
        ({"a": 1}, [], '{"a": 1}'),
        ({"bb": 1}, [(INSERT, "$.a", [])], '{"a": [], "bb": 1}'),
        ({"b": 1}, [(INSERT, "$.é", 2), (INSERT, "$.a", 3)], '{"a": 3, "b": 1, "é": 2}'),
        ([1, 2], [(INSERT, "$[1]", "x")], '[1, "x", 2]'),
        ([1, 2], [(INSERT, "$[7]", "x")], '[1, 2, "x"]'),
        ([1, 2, 3], [(INSERT, "$[last]", "x")], '[1, 2, "x", 3]'),
        ([1, 2, 3], [(INSERT, "$[last-9]", "x")], '["x", 1, 2, 3]'),
        ([1, 2, 3], [(REMOVE, "$[last-1]", None), (REPLACE, "$[0]", {})], "[{}, 3]"),
        ({"a b": {"c": [5]}}, [(REPLACE, '$."a b".c[0]', 2.5)], '{"a b": {"c": [2.5]}}'),
        ({'q"\n': 1}, [(REMOVE, '$."q\\"\\n"', None)], "{}"),
    ],
)
def test_differences_apply_as_the_server_applies_them(document: Any, changes: Any, text: str) -> None:
    assert patch(document, *changes) == text


@pytest.mark.parametrize(
    ("document", "change"),
    [
        ({"a": 1}, (INSERT, "$.a", 2)),
        ({"a": 1}, (REPLACE, "$.b", 2)),
        ({"a": 1}, (REMOVE, "$.b", None)),
        ({"a": 1}, (REPLACE, "$", 2)),
        ({"a": 1}, (INSERT, "$.a.b", 2)),
        ({"a": 1}, (REPLACE, "$[0]", 2)),
        ([1], (REPLACE, "$[1]", 2)),
        ([1], (REMOVE, "$[last-1]", None)),
        ([1], (REMOVE, "$.a", None)),
        ("scalar", (REPLACE, "$[0]", 2)),
        ([1], (7, "$[0]", 2)),
    ],
)
def test_a_difference_that_does_not_apply_is_an_error(document: Any, change: Any) -> None:
    for read in (lambda: patch(document, change), lambda: reference_only(document, change)):
        with pytest.raises(DecodeError):
            read()


def reference_only(document: Any, change: tuple[int, str, Any]) -> str:
    operation, path, value = change
    made = bytes([operation]) + packed_bytes(path.encode())
    return reference_patched_text(binary_json(document), made + packed_bytes(binary_json(value)) * (operation != 2))


@pytest.mark.parametrize("path", ["", "a", "$.", "$[", "$[1", '$."', "$.*", "$**.a", "$[1 to 2]", "$[-1]", "$ .a"])
def test_a_path_that_no_server_logs_is_an_error(path: str) -> None:
    with pytest.raises(DecodeError):
        read_path(path)


# --- single events ------------------------------------------------------------------------------------------

TABLE = Table("t", (wire_type("int"), wire_type("varchar(20)", "utf8mb4"), wire_type("json")), (0,))
PLAN = make_plan(TABLE.map_event(9, Dress(checksum=False, metadata=""))[27:], TABLE.version)


def single(op: int, body: bytes) -> list[dict[str, Any]]:
    made = Given(PLAN, body, [(0, len(body), op)])
    agree(made)
    return decode_batch(np.frombuffer(made.data, np.uint8), made.array(), PLAN, 1).rows.to_pylist()


def test_a_key_that_is_absent_after_is_unchanged() -> None:
    body = b"\x03\x07\x02" + b"\x04" + e.integer(1) + e.short_text("a") + b"\x00" + e.short_text("b")
    assert [(r[OP], r["c0"], r["c1"], r["c2"]) for r in single(L.OP_UPDATE, body)] == [(1, 1, "b", None)]


@pytest.mark.parametrize(
    ("op", "body", "message"),
    [
        (L.OP_DELETE, b"\x03\x02\x00" + e.short_text("a"), "lacks column c0, which tells the row"),
        (L.OP_UPDATE, b"\x03\x06\x07" + b"\x02" + e.short_text("a") + b"\x06" + e.integer(1), "lacks column c0"),
        (L.OP_UPDATE, b"\x03\x01\x02\x00" + e.integer(1) + b"\x00" + e.short_text("b"), "doesn't tell column c2"),
        (L.OP_WRITE, b"\x03\x02\x00" + e.short_text("a"), "a new row lacks column c0"),
        (L.OP_WRITE, b"\x03\x00", "without any column"),
        (L.OP_UPDATE, b"\x03\x00\x00" + b"\x00" * 9, "without any column"),
        (L.OP_PARTIAL_UPDATE, b"\x03\x01\x01\x00" + e.integer(1) + b"\x02\x00" + e.integer(1), "value options"),
        (
            L.OP_PARTIAL_UPDATE,
            b"\x03\x03\x05\x00" + e.integer(1) + e.short_text("a") + b"\x01\x01\x00" + e.integer(1) + bytes(4),
            "column c2 holds JSON differences",
        ),
        (L.OP_UPDATE, b"\x03\x01\x07\x00" + e.integer(1) + b"\x02" + e.integer(1) + b"\x01\0\0\0\xff", "no known type"),
    ],
)
def test_what_cannot_be_known_is_refused_by_name(op: int, body: bytes, message: str) -> None:
    with pytest.raises(RowsError, match=message):
        single(op, body)


def test_the_first_delete_that_lacks_a_column_is_named() -> None:
    whole = b"\x03\x07\x04" + e.integer(1) + e.short_text("a")
    bare = b"\x03\x03\x00" + e.integer(2) + e.short_text("b")
    for second, found in ((whole, None), (bare, BareDelete(1, "c2"))):
        end = len(whole) + len(second)
        made = Given(PLAN, whole + second, [(0, len(whole), L.OP_DELETE), (len(whole), end, L.OP_DELETE)])
        batch = decode_batch(np.frombuffer(made.data, np.uint8), made.array(), PLAN, 1)
        assert (batch.rows.num_rows, batch.bare_delete) == (2, found)
