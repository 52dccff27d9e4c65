"""Play a window's row changes through, and compute the effects of foreign keys on matching rows.

In:  rows as silver has them, logged changes in their order; rules.
Out: every change that no event tells of, in order (Effect); of several the last per key.

The caller must give all rows that a rule can reach, and need give no others. A row has its origin (where the whole row
is), and the columns that changed since. As in InnoDB, a parent's change takes effect at once, before the next event.
NULL matches nothing. An update counts if a referenced value changed at all, even only in case.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final

from tidegate.cascades.rules import Name, Rule
from tidegate.cascades.values import NOT_PLAIN, Doubt
from tidegate.commit_ts import FOREVER

_UNCERTAIN: Final = (object(),)
DEPTH_MAX: Final = 16  # InnoDB refuses more than 15 levels of cascades
Key = tuple[Any, ...]
Order = tuple[int, int, int]  # commit_ts, seq, ordinal


@dataclass(frozen=True, slots=True)
class Row:
    """cells: its key's, and those that rules look at, by name. origin: where the whole row is to be had."""

    key: Key
    cells: Mapping[str, Any]
    origin: Any
    changed: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Logged:
    """A logged change. checked: foreign keys were on in its session. pos: of its event in the log's file."""

    order: Order
    table: Name
    before: Row | None
    after: Row | None
    checked: bool = True
    pos: int = 0


@dataclass(frozen=True, slots=True)
class Effect:
    """A change that the engine made. after: None of a delete."""

    order: Order
    table: Name
    before: Row
    after: Row | None


class CascadedRows:
    """keys: of each table whose rows are followed, its key's columns. begins: from above which commit_ts on. Rules may
    be given anew at a later one (DDL). unsure: tables read by snapshots meanwhile, up to a commit_ts: their rows may
    be given as they were later than their place, or not at all.

    asked: per rule the forms of the rows that were looked for. If rows with such a form weren't given, the result may
    be wrong: the caller looks for them, and plays the window again.
    """

    def __init__(
        self,
        keys: Mapping[Name, Sequence[str]],
        begins: Mapping[Name, int],
        rules: Sequence[Rule],
        effects_max: int,
        unsure: Mapping[Name, int] = MappingProxyType({}),
    ) -> None:
        self._keys = keys
        self._begins = begins
        self._unsure = unsure
        self._left: dict[Name, dict[tuple[str, ...], set[tuple[Any, ...]]]] = {}
        self.asked: dict[Rule, set[tuple[Any, ...]]] = {}
        self._room = effects_max
        self._rows: dict[Name, dict[Key, Row]] = {table: {} for table in keys}
        self._of_parent: dict[Name, list[Rule]] = {}
        self._of_child: dict[Name, list[Rule]] = {}
        self._index: dict[tuple[str, Name], dict[tuple[Any, ...], dict[Key, None]]] = {}
        self.effects: list[Effect] = []
        self.use(rules)

    def use(self, rules: Sequence[Rule]) -> None:
        """These are in force from here on."""
        self._of_parent, self._of_child = {}, {}
        for rule in sorted(rules, key=lambda rule: rule.id):
            self._of_parent.setdefault(rule.parent, []).append(rule)
            self._of_child.setdefault(rule.child, []).append(rule)
        self._index = {(rule.id, rule.child): {} for rule in rules}
        for table, rows in self._rows.items():
            for row in rows.values():
                self._note(table, row)

    def put(self, table: Name, row: Row) -> None:
        """A row that is there, or comes."""
        self.take(table, row.key)
        self._rows[table][row.key] = row
        self._note(table, row)

    def take(self, table: Name, key: Key) -> Row | None:
        """A row goes."""
        row = self._rows[table].pop(key, None)
        if row is not None:
            for rule in self._of_child.get(table, ()):
                form = _form(rule, row)
                if form is not None:
                    self._index[rule.id, table][form].pop(key, None)
        return row

    def empty(self, table: Name) -> None:
        """TRUNCATE, DROP: no child's rows go with these."""
        for key in list(self._rows.get(table, ())):
            self.take(table, key)

    def _note(self, table: Name, row: Row) -> None:
        for rule in self._of_child.get(table, ()):
            form = _form(rule, row)
            if form is not None:
                self._index[rule.id, table].setdefault(form, {})[row.key] = None

    def follow(self, change: Logged) -> None:
        """Take in a logged change, then what it does to others. Raises Doubt."""
        table, before, after = change.table, change.before, change.after
        if table in self._rows and change.order[0] > self._begins[table]:
            if before is not None:
                self.take(table, before.key)
            if after is not None:
                self.put(table, after)
        if before is not None and change.checked:
            self._act(change.order, table, before.cells, None if after is None else after.cells, 1)

    def _act(
        self, order: Order, table: Name, before: Mapping[str, Any], after: Mapping[str, Any] | None, depth: int
    ) -> None:
        if depth > DEPTH_MAX:
            raise Doubt("foreign keys act on one another more often than a server lets them", table)
        for rule in self._of_parent.get(table, ()):
            action = rule.on_delete if after is None else rule.on_update
            names = rule.parent_columns
            if not action or (after is not None and all(before[name] == after[name] for name in names)):
                continue
            form = rule.form(before, names)
            if form is None:
                continue
            if order[0] <= self._begins.get(rule.child, FOREVER):
                self._check_unseen(order, rule, after is None and action == "CASCADE", frozenset())
                continue
            self.asked.setdefault(rule, set()).add(form)
            if order[0] <= self._unsure.get(rule.child, -1):
                self._check_unseen(order, rule, after is None and action == "CASCADE", frozenset())
                self._check_unsure(rule, form, after if action == "CASCADE" else None)
            if self._index[rule.id, rule.child].get(_UNCERTAIN):
                raise Doubt(NOT_PLAIN, rule.child)
            for key in list(self._index[rule.id, rule.child].get(form, ())):
                row = self._rows[rule.child].get(key)
                if row is not None:
                    self._change(order, rule, row, _changed(rule, action, before, after), depth)

    def _check_unseen(self, order: Order, rule: Rule, goes: bool, seen: frozenset[Rule]) -> None:
        """The effect of a rule on a table's rows isn't seen here: so no rows may depend on it, be they another's or, in
        a tree, its own. goes: rows go.
        """
        for further in self._of_parent.get(rule.child, ()):
            touched = goes or not {*further.parent_columns}.isdisjoint(rule.columns)
            action = (further.on_delete if goes else further.on_update) if touched else ""
            if action and order[0] > self._begins.get(further.child, FOREVER):
                why = f"what becomes of {'.'.join(further.parent)} isn't known here, and its foreign key hangs on it"
                raise Doubt(why, further.child)
            if action and further not in seen:
                self._check_unseen(order, further, goes and action == "CASCADE", seen | {further})

    def _check_unsure(self, rule: Rule, form: tuple[Any, ...], after: Mapping[str, Any] | None) -> None:
        """A value lost by rows and got by others meanwhile: a row with it, as it was read later, isn't one of the
        losers.
        """
        left = self._left.setdefault(rule.child, {})
        if after is not None:
            given = rule.form(after, rule.parent_columns)
            for columns, forms in left.items():
                if given in forms if columns == rule.columns else not {*columns}.isdisjoint(rule.columns):
                    why = "a snapshot of it was read while its parents lost a value and had it again"
                    raise Doubt(why, rule.child)
        left.setdefault(rule.columns, set()).add(form)

    def _change(self, order: Order, rule: Rule, row: Row, cells: Mapping[str, Any] | None, depth: int) -> None:
        self._room -= 1
        if self._room < 0:
            raise Doubt("foreign keys change more rows of a window than are followed in memory", rule.child)
        table = rule.child
        made = None
        self.take(table, row.key)
        if cells is not None:
            all_cells = {**row.cells, **cells}
            key = tuple(all_cells[name] for name in self._keys[table])
            made = replace(row, key=key, cells=all_cells, changed={**row.changed, **cells})
            self.put(table, made)
        self.effects.append(Effect(order, table, row, made))
        self._act(order, table, row.cells, None if made is None else made.cells, depth + 1)


def _form(rule: Rule, row: Row) -> tuple[Any, ...] | None:
    """The compared form of a child's row. That it is uncertain matters only where the rule is asked."""
    try:
        return rule.form(row.cells, rule.columns)
    except Doubt:
        return _UNCERTAIN


def _changed(
    rule: Rule, action: str, before: Mapping[str, Any], after: Mapping[str, Any] | None
) -> Mapping[str, Any] | None:
    """The new values of a child's columns; None when the row goes."""
    if action == "SET NULL":
        return dict.fromkeys(rule.columns)
    if after is None:
        return None
    pairs = zip(rule.columns, rule.parent_columns, strict=True)
    values = {own_column: after[theirs] for own_column, theirs in pairs if before[theirs] != after[theirs]}
    return {name: _fit(rule, name, value) for name, value in values.items()}


def _fit(rule: Rule, name: str, value: Any) -> Any:
    return value.rstrip(" ") if name in rule.fixed and isinstance(value, str) else value


def last_changes(effects: Sequence[Effect]) -> Iterator[tuple[Name, Key, Effect]]:
    """Per table and key its last effect; where the effect moved the row to another key, of both."""
    last_effects: dict[tuple[Name, Key], Effect] = {}
    for effect in effects:
        last_effects[effect.table, effect.before.key] = effect
        if effect.after is not None:
            last_effects[effect.table, effect.after.key] = effect
    for (table, key), effect in last_effects.items():
        yield table, key, effect
