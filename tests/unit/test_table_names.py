"""Names of tables are tuples: what was stored or sent as a plain one is equal to them."""

from __future__ import annotations

import json
import pickle

import pyarrow as pa

from tidegate.config.table_keys.tables import Tables
from tidegate.snapshot.progress.events import TableKey
from tidegate.table_names import Logical, Physical

T = Physical("s", "d", "t")


def test_a_plain_tuple_finds_what_a_name_was_kept_under() -> None:
    assert {T: 1}["s", "d", "t"] == 1  # type: ignore[index]
    assert sorted([T, Physical("a", "z", "z")]) == [("a", "z", "z"), ("s", "d", "t")]
    assert (T.pair, T.shown) == (T[1:], "d.t")


def test_a_name_is_stored_and_sent_as_before() -> None:
    assert json.loads(json.dumps({"of": T})) == {"of": ["s", "d", "t"]}
    assert pa.array([list(T)]).to_pylist() == [["s", "d", "t"]]
    assert pickle.loads(pickle.dumps(T)) == T


def test_a_key_of_a_snapshot_names_its_table() -> None:
    assert TableKey("x", *T).physical == T


def test_an_unrouted_table_is_its_own_logical_one() -> None:
    logical = Tables(include=["*.*"]).logical("d", "a.b")
    assert logical == Logical("d", "a.b", routed=False)
    assert (logical.name, logical.routed) == ("d.a.b", False)
