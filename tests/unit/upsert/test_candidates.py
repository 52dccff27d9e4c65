"""Ruling files out: never one that may hold a changed key, whoever wrote its statistics."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.delta.table.live_file import LiveFile
from tidegate.upsert.files.partition_values import partition_text
from tidegate.upsert.files.statistics import statistics
from tidegate.upsert.keys.candidates import candidates
from tidegate.upsert.keys.file import KeyFile
from tidegate.upsert.keys.hash import SEED, key_hashes, leads
from tidegate.upsert.keys.probe_table import KeyTable
from tidegate.upsert.keys.resolve import resolve


def table_of(keys: pa.Table) -> KeyTable:
    columns = keys.columns
    none = np.zeros(keys.num_rows, np.int64)
    return resolve(
        [
            KeyFile(
                source="s",
                key_schema=keys.schema,
                seed=SEED,
                hashes=key_hashes(columns),
                commit_ts=none,
                seq=none,
                ordinal=none,
                file=none.astype(np.int32),
                row=none,
                leads=np.array([leads(column) for column in columns]),
                adds=({"path": "new"},),
            )
        ]
    ).table


def file_of(stats: str | None, **partitions: str | None) -> LiveFile:
    return LiveFile({"path": "f", "size": 1, "partitionValues": partitions, "stats": stats})


VALUES: dict[str, tuple[st.SearchStrategy[Any], pa.DataType]] = {
    "integer": (st.integers(-(1 << 63), (1 << 63) - 1), pa.int64()),
    "text": (st.text(max_size=50), pa.string()),
    "bytes": (st.binary(max_size=20), pa.binary()),
    "decimal": (st.decimals(-(10**34), 10**34, places=2), pa.decimal128(38, 2)),
    "unsigned": (st.decimals(0, 2**64 - 1, places=0), pa.decimal128(20, 0)),
    "double": (st.floats(allow_nan=False, allow_infinity=False), pa.float64()),
    "float": (st.floats(allow_nan=False, allow_infinity=False, width=32), pa.float32()),
    "date": (st.dates(), pa.date32()),
    "datetime": (st.datetimes(), pa.timestamp("us")),
    "timestamp": (st.datetimes(timezones=st.just(UTC)), pa.timestamp("us", tz="UTC")),
    "boolean": (st.booleans(), pa.bool_()),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_file_that_holds_a_key_is_never_ruled_out(name: str) -> None:
    values, kind = VALUES[name]

    @settings(deadline=None)
    @given(st.lists(values, min_size=1, max_size=5), st.lists(values, min_size=1, max_size=5), st.data())
    def holds(stored: list[Any], others: list[Any], data: st.DataObject) -> None:
        rows = pa.table({"k": pa.array(stored, kind)})
        keys = pa.table({"k": pa.array([data.draw(st.sampled_from(stored)), *others], kind)})
        assert candidates([file_of(statistics(rows, ["k"]))], table_of(keys))

    holds()


@pytest.mark.parametrize("name", VALUES)
def test_a_partition_that_holds_a_key_is_never_ruled_out(name: str) -> None:
    values, kind = VALUES[name]

    @settings(deadline=None)
    @given(values)
    def holds(value: Any) -> None:
        keys = pa.table({"k": pa.array([value], kind)})
        assert candidates([file_of(None, k=partition_text(pa.scalar(value, kind).as_py()))], table_of(keys))

    holds()


def file_between(low: Any, high: Any) -> LiveFile:
    return file_of(json.dumps({"numRecords": 1, "minValues": {"k": low}, "maxValues": {"k": high}}))


@pytest.mark.parametrize(
    ("key", "kind", "outside"),
    [
        (5, pa.int64(), [(6, 9), (-3, 4)]),
        ("m", pa.string(), [("n", "z"), ("a", "l")]),
        ("2024-05-05", pa.date32(), [("2024-05-06", "2024-06-01")]),
        ("2024-05-05T00:00:00.500", pa.timestamp("us"), [("2024-05-05T00:00:00.501", "2025-01-01T00:00:00.000")]),
        (7.5, pa.float64(), [(8, 9.5), (-1.5, 7.25)]),
        (True, pa.bool_(), []),
    ],
)
def test_a_file_beside_all_keys_is_ruled_out(key: Any, kind: pa.DataType, outside: list[tuple[Any, Any]]) -> None:
    table = table_of(pa.table({"k": pa.array([key]).cast(kind)}))
    assert not candidates([file_between(low, high) for low, high in outside], table)


def test_gaps_between_keys_rule_out_too() -> None:
    table = table_of(pa.table({"k": pa.array([1, 1000])}))
    inside, gap = file_between(900, 1100), file_between(2, 999)
    assert candidates([inside, gap], table) == [inside]


def test_any_column_of_the_key_rules_out() -> None:
    table = table_of(pa.table({"shard": pa.array(["a", "b"]), "k": pa.array([1, 50])}))
    bounds = {"minValues": {"shard": "a", "k": 40}, "maxValues": {"shard": "a", "k": 60}}
    assert not candidates([file_of(json.dumps(bounds))], table)
    bounds["maxValues"]["shard"] = "b"
    assert candidates([file_of(json.dumps(bounds))], table)


@pytest.mark.parametrize(
    "stats",
    [
        None,
        "",
        "{}",
        "[]",
        '{"numRecords":3}',
        '{"minValues":{"k":900}}',
        '{"minValues":{"k":900},"maxValues":{"k":"NaN"}}',
        '{"minValues":{"k":"900"},"maxValues":{"k":"999"}}',
        '{"minValues":{"k":900.5},"maxValues":{"k":999.5}}',
        '{"minValues":{"k":true},"maxValues":{"k":true}}',
        '{"minValues":{"k":900},"maxValues":{"k":99999999999999999999999}}',
        '{"minValues":{"k":900},"maxValues":{"k":800}}',
    ],
)
def test_missing_and_odd_statistics_rule_nothing_out(stats: str | None) -> None:
    assert candidates([file_of(stats)], table_of(pa.table({"k": pa.array([5])})))


def test_a_maximum_cut_to_milliseconds_rules_nothing_out_within_it() -> None:
    """Spark rounds both bounds down."""
    keys = pa.table({"k": pa.array(["2024-01-01T00:00:00.000999"]).cast(pa.timestamp("us"))})
    assert candidates([file_between("2023-01-01T00:00:00.000", "2024-01-01T00:00:00.000")], table_of(keys))


@pytest.mark.parametrize("end", ["59.999", "59.998", "59.999999"])
@pytest.mark.parametrize(("zone", "tz"), [("", None), ("Z", "UTC")])
def test_the_last_moment_that_there_is_can_be_a_bound(end: str, zone: str, tz: str | None) -> None:
    """Temporal tables have it as "for ever"; a writer that cuts to milliseconds has rows a little behind its bound."""
    key = datetime.fromisoformat(f"9999-12-31T23:59:{end}")
    rows = pa.table({"k": pa.array([key.replace(tzinfo=UTC) if tz else key], pa.timestamp("us", tz=tz))})
    cut = f"9999-12-31T23:59:{end[:6]}{zone}"
    file = file_between(f"2024-01-01T00:00:00.000{zone}", cut)
    assert candidates([file], table_of(rows)) == [file]
    assert not candidates(
        [file_between(f"2024-01-01T00:00:00.000{zone}", f"9999-12-31T00:00:00.000{zone}")], table_of(rows)
    )
