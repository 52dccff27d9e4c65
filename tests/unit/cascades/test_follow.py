"""What foreign keys do to rows, against a server of a few lines that looks at each row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.cascades.follow import CascadedRows, Logged, Row, last_changes
from tidegate.cascades.rules import Rule, rules_of
from tidegate.cascades.values import Doubt, Likeness, likeness
from tidegate.schema.model.columns import Column, TableVersion
from tidegate.schema.model.unlogged import ForeignKey

P, C, G, H = ("d", "p"), ("d", "c"), ("d", "g"), ("d", "h")
KEYS = {P: ("id",), C: ("id",), G: ("id",)}
ROOM = 1000


def _rule(child: tuple[str, str], parent: tuple[str, str], column: str, on_delete: str, on_update: str) -> Rule:
    likes = (Likeness.EXACT,)
    return Rule(f"d/{child[1]}_{column}", child, parent, (column,), ("id",), on_delete, on_update, likes)


def _row(cells: dict[str, Any]) -> Row:
    return Row((cells["id"],), dict(cells), None)


class _Server:
    """Tables as dicts; a parent's change looks at every row of every child."""

    def __init__(self, rules: list[Rule]) -> None:
        self.rules = sorted(rules, key=lambda rule: rule.id)
        self.tables: dict[tuple[str, str], dict[int, dict[str, Any]]] = {P: {}, C: {}, G: {}}

    def change(self, table: tuple[str, str], before: dict[str, Any] | None, after: dict[str, Any] | None) -> None:
        if before is not None:
            del self.tables[table][before["id"]]
        if after is not None:
            self.tables[table][after["id"]] = after
        if before is not None:
            self._act(table, before, after)

    def _act(self, table: tuple[str, str], before: dict[str, Any], after: dict[str, Any] | None) -> None:
        for rule in self.rules:
            action = rule.on_delete if after is None else rule.on_update
            if rule.parent != table or not action or (after is not None and before["id"] == after["id"]):
                continue
            column = rule.columns[0]
            for key in list(self.tables[rule.child]):
                row = self.tables[rule.child].get(key)
                if row is None or row[column] != before["id"]:
                    continue
                new = row | {column: None} if action == "SET NULL" else after and row | {column: after["id"]}
                del self.tables[rule.child][key]
                if new:
                    self.tables[rule.child][new["id"]] = new
                self._act(rule.child, row, new or None)


_ACTIONS = st.sampled_from(["", "CASCADE", "SET NULL"])
_IDS = st.integers(0, 5)


@given(
    st.tuples(*[st.tuples(_ACTIONS, _ACTIONS)] * 3),
    st.lists(st.tuples(st.sampled_from([P, C, G]), st.sampled_from("iud"), _IDS, _IDS, _IDS), max_size=40),
    st.integers(0, 40),
)
def test_it_is_what_a_server_does_row_by_row(
    actions: tuple[tuple[str, str], ...], script: list[tuple[Any, ...]], cut: int
) -> None:
    rules = [_rule(C, P, "p", *actions[0]), _rule(G, C, "c", *actions[1]), _rule(G, P, "p", *actions[2])]
    server, changes = _Server(rules), list[Logged]()
    base: dict[tuple[str, str], dict[int, dict[str, Any]]] = {P: {}, C: {}, G: {}}
    for number, (table, what, key, one, other) in enumerate(script):
        if number == cut:
            base, changes = {name: dict(rows) for name, rows in server.tables.items()}, []
        rows = server.tables[table]
        before, after = rows.get(key), {"id": key, "p": one or None, "c": other or None}
        if (what == "i") is (before is not None) or (what == "u" and one != key and one in rows):
            continue
        if what == "u":
            after["id"] = one if table == P else key
        if what == "d":
            after = None
        server.change(table, before, after)
        order = (number + 1, 1, number)
        changes.append(Logged(order, table, before and _row(before), after and _row(after)))

    world = CascadedRows(KEYS, dict.fromkeys(KEYS, 0), rules, ROOM)
    for table, rows in base.items():
        for cells in rows.values():
            world.put(table, _row(cells))
    for change in changes:
        world.follow(change)

    left = {table: dict(rows) for table, rows in base.items()}
    staged: dict[Any, tuple[Any, dict[str, Any] | None]] = {}
    for change in changes:  # net changes, as apply writes them: the last per key, by its place
        for row, cells in ((change.before, None), (change.after, change.after and dict(change.after.cells))):
            if row is not None:
                staged[change.table, row.key] = ((*change.order, cells is not None), cells)
    for table, key, effect in last_changes(world.effects):
        kept = effect.after if effect.after is not None and effect.after.key == key else None
        place = (*effect.order, True)
        if (table, key) not in staged or staged[table, key][0] < place:
            staged[table, key] = (place, None if kept is None else dict(kept.cells))
    for (table, (key,)), (_, cells) in staged.items():
        left[table].pop(key, None)
        if cells is not None:
            left[table][key] = cells
    assert left == server.tables


def test_sessions_without_checks_and_values_that_stay_do_nothing() -> None:
    world = CascadedRows({C: ("id",)}, {C: 0}, [_rule(C, P, "p", "CASCADE", "CASCADE")], ROOM)
    world.put(C, _row({"id": 1, "p": 7, "c": None}))
    world.follow(Logged((1, 1, 1), P, _row({"id": 7}), None, checked=False))
    world.follow(Logged((2, 1, 1), P, _row({"id": 7, "n": 1}), _row({"id": 7, "n": 2})))
    assert (world.effects, world.asked) == ([], {})


def test_what_hangs_on_rows_that_are_not_seen_is_in_doubt() -> None:
    rules = [_rule(C, P, "p", "CASCADE", ""), _rule(G, C, "c", "CASCADE", "")]
    world = CascadedRows({G: ("id",)}, {G: 0}, rules, ROOM)
    with pytest.raises(Doubt, match=r"d\.c isn't known here") as caught:
        world.follow(Logged((1, 1, 1), P, _row({"id": 7}), None))
    assert caught.value.table == G
    assert (
        CascadedRows({C: ("id",)}, {C: 5}, rules[:1], ROOM).follow(Logged((1, 1, 1), P, _row({"id": 7}), None)) is None
    )


def test_what_hangs_by_way_of_others_on_rows_that_are_not_seen_is_in_doubt() -> None:
    rules = [_rule(C, P, "p", "CASCADE", ""), _rule(G, C, "c", "CASCADE", ""), _rule(H, G, "g", "SET NULL", "")]
    world = CascadedRows({H: ("id",)}, {H: 0}, rules, ROOM)
    with pytest.raises(Doubt, match=r"d\.g isn't known here") as caught:
        world.follow(Logged((1, 1, 1), P, _row({"id": 7}), None))
    assert caught.value.table == H


def test_a_tree_whose_rows_may_lack_is_in_doubt_up_to_there() -> None:
    """Between a row that goes and those below it one may lack that went unseen before it was read."""
    rules = [_rule(C, C, "p", "CASCADE", "")]
    for unsure, told in ((9, True), (4, False)):
        world = CascadedRows({C: ("id",)}, {C: 0}, rules, ROOM, {C: unsure})
        for number, up in ((5, 9), (1, 5)):
            world.put(C, _row({"id": number, "p": up}))
        change = Logged((5, 1, 1), C, _row({"id": 9, "p": None}), None)
        if told:
            with pytest.raises(Doubt, match=r"d\.c isn't known here"):
                world.follow(change)
        else:
            world.follow(change)
            assert [effect.before.key for effect in world.effects] == [(5,), (1,)]


def test_what_hangs_on_columns_that_stay_is_not_in_doubt() -> None:
    rules = [_rule(C, P, "p", "SET NULL", "CASCADE"), _rule(G, C, "c", "CASCADE", "CASCADE")]
    for begins, unsure in (({G: 0}, {}), ({C: 0, G: 0}, {C: 9})):
        world = CascadedRows(dict.fromkeys(begins, ("id",)), begins, rules, ROOM, unsure)
        world.follow(Logged((1, 1, 1), P, _row({"id": 7}), None))
        world.follow(Logged((2, 1, 1), P, _row({"id": 8}), _row({"id": 9})))
        assert world.effects == []


def test_more_rows_than_there_is_room_for_are_in_doubt() -> None:
    world = CascadedRows(KEYS, dict.fromkeys(KEYS, 0), [_rule(C, P, "p", "CASCADE", "")], 2)
    for number in range(3):
        world.put(C, _row({"id": number, "p": 7}))
    with pytest.raises(Doubt, match="more rows"):
        world.follow(Logged((1, 1, 1), P, _row({"id": 7}), None))


def _two_to_one() -> CascadedRows:
    """Parents 1, 2, 3 have children 10, 20, 30; 1 goes, and the others move down: a chunk that was read then has
    20 -> 1 and 30 -> 2, at its low mark.
    """
    world = CascadedRows({C: ("id",)}, {C: 99}, [_rule(C, P, "p", "CASCADE", "CASCADE")], ROOM, {C: 1000})
    world.follow(Logged((100, 0, 0), C, None, _row({"id": 20, "p": 1}), checked=False))
    world.follow(Logged((100, 0, 1), C, None, _row({"id": 30, "p": 2}), checked=False))
    return world


def test_a_value_that_is_left_and_given_again_below_a_chunk_is_in_doubt() -> None:
    world = _two_to_one()
    world.follow(Logged((110, 5, 1), P, _row({"id": 1}), None))
    with pytest.raises(Doubt, match="lost a value and had it again") as caught:
        world.follow(Logged((120, 5, 2), P, _row({"id": 2}), _row({"id": 1})))
    assert caught.value.table == C
    world = _two_to_one()
    world.follow(Logged((120, 5, 2), P, _row({"id": 2}), _row({"id": 1})))
    with pytest.raises(Doubt, match="lost a value and had it again"):
        world.follow(Logged((120, 5, 3), P, _row({"id": 3}), _row({"id": 2})))


def test_values_that_are_left_or_given_below_a_chunk_are_followed() -> None:
    world = _two_to_one()
    world.follow(Logged((110, 5, 1), P, _row({"id": 7}), None))
    world.follow(Logged((120, 5, 2), P, _row({"id": 2}), _row({"id": 9})))
    world.follow(Logged((130, 5, 3), P, None, _row({"id": 7})))
    assert [(effect.before.key, effect.after and effect.after.cells["p"]) for effect in world.effects] == [((30,), 9)]


def test_another_key_of_the_same_columns_counts_as_well() -> None:
    rules = [_rule(C, P, "p", "CASCADE", ""), replace(_rule(C, G, "p", "", "CASCADE"), id="d/other")]
    world = CascadedRows({C: ("id",)}, {C: 99}, rules, ROOM, {C: 1000})
    world.follow(Logged((110, 5, 1), P, _row({"id": 1}), None))
    with pytest.raises(Doubt, match="lost a value and had it again"):
        world.follow(Logged((120, 5, 2), G, _row({"id": 2}), _row({"id": 1})))


def test_what_hangs_on_a_table_that_a_snapshot_fills_is_in_doubt() -> None:
    """A row of it that went before it was read has rows below it elsewhere."""
    rules = [_rule(C, P, "p", "CASCADE", ""), _rule(G, C, "c", "CASCADE", "")]
    world = CascadedRows({C: ("id",), G: ("id",)}, {C: 99, G: 99}, rules, ROOM, {C: 1000})
    world.put(G, _row({"id": 5, "c": 10}))
    with pytest.raises(Doubt, match="hangs on it") as caught:
        world.follow(Logged((110, 5, 1), P, _row({"id": 1}), None))
    assert caught.value.table == G


def _text(collation: str) -> Column:
    return Column(1, "t", "varchar(9)", charset="utf8mb4", collation=collation)


@pytest.mark.parametrize(
    ("collation", "one", "other", "equal"),
    [
        ("utf8mb4_general_ci", "Ab ", "aB", True),
        ("utf8mb4_0900_ai_ci", "Ab ", "aB", False),
        ("utf8mb4_0900_ai_ci", "Ab", "aB", True),
        ("utf8mb4_bin", "é ", "é", True),
        ("utf8mb4_bin", "A", "a", False),
        ("utf8mb4_0900_bin", "a ", "a", False),
        ("utf8mb4_uca1400_ai_ci", "A", "a", True),
    ],
)
def test_texts_equal_as_their_collation_has_it(collation: str, one: str, other: str, equal: bool) -> None:
    form = likeness(_text(collation), _text(collation)).form
    assert (form(one) == form(other)) is equal


@pytest.mark.parametrize("text", ["é", "a\x01", "ß"])
def test_a_text_that_a_collation_may_take_for_another_is_in_doubt(text: str) -> None:
    with pytest.raises(Doubt, match="plain ASCII"):
        likeness(_text("utf8mb4_general_ci"), _text("utf8mb4_general_ci")).form(text)


def test_columns_whose_values_are_not_compared_are_in_doubt() -> None:
    for child, parent in (
        (_text("utf8mb4_general_ci"), _text("utf8mb4_bin")),
        (_text("utf8mb4_german2_ci"), _text("utf8mb4_german2_ci")),
        (Column(1, "a", "int(11)"), Column(2, "b", "bigint(20)")),
        (Column(1, "a", "float"), Column(2, "b", "float")),
        (Column(1, "a", "binary(3)"), Column(2, "b", "binary(4)")),
    ):
        with pytest.raises(Doubt):
            likeness(child, parent)


def _version(table: str, keys: tuple[ForeignKey, ...] = (), **more: Any) -> TableVersion:
    columns = (Column(1, "id", "int(11)", nullable=False), Column(2, "p", "int(11)"))
    place = {"version": 1, "commit_ts": 1, "file": "b", "pos": 4, "kind": "create", "ddl": ""}
    whole = {"columns": columns, "key": (1,), "charset": "utf8mb4", "foreign_keys": keys, **place, **more}
    return TableVersion(source="s", database="d", table=table, **whole)


def test_a_key_becomes_a_rule_or_a_doubt() -> None:
    key = ForeignKey("fk", P, "CASCADE", "", columns=("P",), parent_columns=("id",))
    (rule,) = rules_of(_version("c", (key,)), {P: _version("p")})
    assert (rule.columns, rule.parent_columns, rule.likeness) == (("p",), ("id",), (Likeness.EXACT,))
    assert rules_of(_version("c", (key,)), {P: None}) == [], "no parent, no rows that could go"
    for doubtful in (
        _version("c", (ForeignKey("fk", P, "CASCADE"),)),
        _version("c", (ForeignKey("fk", P, "SET DEFAULT", "", columns=("p",), parent_columns=("id",)),)),
        _version("c", (key,), key=()),
        _version("c", (key,), engine="rocksdb"),
    ):
        with pytest.raises(Doubt):
            rules_of(doubtful, {P: _version("p")})
