"""Changes by foreign keys below the binlog, from the parents' rows, staged as if logged.

In:  the staged changes of decode_changes, the parents' row events, rows of children in silver.
Out: the staged changes and more of children (ddl.unlogged_cascades: follow); children are held where it isn't certain.

Nothing is read unless a segment of the window names a parent of such a table, and no row of a child unless a parent's
referenced values went or changed. The window is played through (include/tidegate/cascades/follow.py) over the rows with
one of these values; missing rows are looked for in silver, and it is played again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

import pyarrow as pa

from spark_jobs.cascades.logged import LoggedChanges, Looked, Store, acts_on
from spark_jobs.cascades.made import changes_made
from spark_jobs.cascades.there import chunk_rows, exact_rows, silver_rows
from spark_jobs.cascades.told import Teller
from spark_jobs.cascades.unsure import exact_from, read_meanwhile, unsure_upto
from spark_jobs.positional.changes_stage import ChangesStage, InDriver, Staged
from spark_jobs.window.application import Application
from spark_jobs.window.made import MadeByKeys, StagedChanges, StagedTable
from spark_jobs.window.named_segments import tables_named
from spark_jobs.window.plan import TablePlan
from spark_jobs.window.shape.cascading import ancestors, cascade_graph, descendants, rules_at
from spark_jobs.window.shape.decode_plan import Decoded
from spark_jobs.window.shape.shapes import kept_of
from spark_jobs.window.standing.standings import hold, met_in
from spark_jobs.window.window import PrewrittenSegment, StagedFile, TableWindow, Window
from tidegate import limits
from tidegate.cascades.follow import CascadedRows, Effect, Logged, Order, Row
from tidegate.cascades.rules import Rule, links_of, rules_of
from tidegate.cascades.values import Doubt
from tidegate.errors import Terminal, Transient, unexpected
from tidegate.merge.kept import in_silver, masked, unasked
from tidegate.merge.phases import empties
from tidegate.remedy import Needs
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.segments.result import NOTHING_KNOWN
from tidegate.standing.causes import Cause, cause_of
from tidegate.standing.events import Refused
from tidegate.standing.standing import Place
from tidegate.table_names import Physical
from tidegate.upsert.target import NotStaged, StagedUpsert

Name = tuple[str, str]
Children = dict[Name, TableWindow]


@dataclass(frozen=True, slots=True)
class _Given:
    """The values of earlier steps. made: staged here for foreign keys, by logical table."""

    committed: Sequence[PrewrittenSegment]
    plans: Mapping[str, TablePlan]
    decoded: Decoded
    made: dict[str, StagedTable] = field(default_factory=dict)
    by_keys: MadeByKeys = field(default_factory=MadeByKeys)


def follow_cascades(
    app: Application,
    window: Window,
    committed: Sequence[PrewrittenSegment],
    plans: Mapping[str, TablePlan],
    decoded: Decoded,
) -> StagedChanges:
    """Add the effects of foreign keys on tables of the window to the staged changes."""
    given = _Given(committed, plans, decoded)
    parents = cascade_graph(app).parents
    for source in sorted(parents):
        children = {
            physical.pair: entry
            for entry in window.tables.values()
            for physical in entry.physical
            if physical.source == source and physical.pair in parents[source] and entry.begins(physical) < window.cut_ts
            if app.histories[source].version_at(*physical.pair, window.cut_ts) is not None  # a rebuild knows later ones
        }
        while children:
            try:
                _Played(app, window, given, source, children).stage()
                break
            except Doubt as doubt:
                _hold(app, window, source, children, doubt)
            except (OSError, MemoryError, Transient):
                raise
            except Exception as error:  # noqa: BLE001 - a fault of ours is these tables' alone
                known = error if isinstance(error, Terminal) else unexpected(error)
                _hold(app, window, source, children, Doubt(known.line))
    return replace(decoded.staged.joined(given.made), by_keys=given.by_keys)


def _hold(app: Application, window: Window, source: str, children: Children, doubt: Doubt) -> None:
    """The tables of a doubt leave the window, and wait for rows."""
    about = [doubt.table] if doubt.table in children else []
    if not about and (parent := doubt.parent or doubt.table) is not None:
        about = [child.pair for child in descendants(app, Physical(source, *parent)) if child.pair in children]
    for name in about or list(children):
        entry = children.pop(name)
        line = f"{entry.name}: its foreign keys act without row events, and can't be followed here: {doubt.why}"
        place = _place(app, window, Physical(source, *name), entry.name)
        hold(app, window, entry.name, Refused(Cause.NEEDS_ROWS, line, place, needs=Needs.ROWS))


def _place(app: Application, window: Window, physical: Physical, name: str) -> Place:
    """Where a doubt was met: below the rename or drop of its table, where the wait ends then. The table that has its
    rows now waits with it, and a snapshot reads it anew.
    """
    place, version = met_in(app, window, name), app.histories[physical.source].version_at(*physical.pair, window.cut_ts)
    if version is None or version.status is not VersionStatus.DROPPED:
        return place
    return replace(place, at_ts=version.commit_ts - 1)


@dataclass(slots=True)
class _Rules:
    """Rules from commit_ts on, and the tables emptied there by a statement, or given anew by a wave."""

    commit_ts: int
    rules: list[Rule]
    emptied: list[Name] = field(default_factory=list)


class _Played:
    """One source's share of a window."""

    def __init__(self, app: Application, window: Window, given: _Given, source: str, children: Children) -> None:
        self._app, self._window, self._given, self._source, self._children = app, window, given, source, children
        self._begins: dict[Name, int] = {}
        self._from: dict[Name, int] = {}  # of a table above children, from where the first of them begins
        for name, entry in children.items():
            self._begins[name] = begin_ts = entry.begins(Physical(source, *name))
            above = [ancestor.pair for ancestor in ancestors(app, Physical(source, *name))]
            for table in (name, *above):
                self._from[table] = min(begin_ts, self._from.get(table, begin_ts))
        self._tables = {*self._from}
        self._reader = LoggedChanges(app, window, given.committed, source)
        self._store = Store()
        self._told: dict[Name, str] = {}  # children that have a changelog
        self._positions: dict[Order, int] = {}  # in the log, of changes that may have effects

    def stage(self) -> None:
        """Raises Doubt, before anything is staged."""
        changed = self._parents_named()
        if not changed:
            return
        self._check_readable(changed)
        keeps = self._app.pipeline.tables.keeps_changelog
        self._told = {name: of.name for name, of in self._children.items() if keeps(of.database, of.table)}
        self._reader.keeps_places = bool(self._told)
        times = self._rules()
        every = [rule for rules_then in times for rule in rules_then.rules]
        looked = self._looked(every)
        acts = self._acts(every, looked)
        if not acts:
            return
        looked = _concerned(every, looked, acts)
        self._check_shapes(looked)
        effects = self._play(times, looked, acts)
        if not effects:
            return
        self._check_again(effects)
        self._stage(effects)

    def _parents_named(self) -> set[Name]:
        """Parents perhaps changed by segments of the window."""
        links = cascade_graph(self._app).children.get(self._source, {})
        named = tables_named(self._app.names, self._window, self._given.committed, self._source)
        return named & links.keys() & self._tables

    def _check_readable(self, parents: Collection[Name]) -> None:
        in_window = {physical.pair for entry in self._window.tables.values() for physical in entry.physical}
        apart = {name: self._from[name] for name in parents if name not in in_window}
        if not apart:
            return
        held = self._app.histories[self._source].held
        if lost := sorted(name for name in apart if name in held):
            raise Doubt(f"a statement about its parent {'.'.join(lost[0])} wasn't followed", parent=lost[0])
        self._reader.check_readable(apart, self._given.decoded.plan.known.get(self._source, NOTHING_KNOWN))

    def _rules(self) -> list[_Rules]:
        """The rules in force in each part of the window, as versions of the tables begin and end."""
        history, low_ts = self._app.histories[self._source], min(self._begins.values())
        made = [
            version
            for table in self._tables
            for version in history.versions(*table)
            if low_ts < version.commit_ts <= self._window.cut_ts
        ]
        anew = {name: exact_from(entry) for name, entry in self._children.items()}
        rules_by_time = []
        times = sorted({low_ts, *(version.commit_ts for version in made), *filter(None, anew.values())})
        for commit_ts, upto_ts in zip(times, [*times[1:], self._window.cut_ts + 1], strict=True):
            begun = sorted(table for table in self._tables if self._from[table] + 1 < upto_ts)
            rules = [rule for table in begun for rule in self._rules_at(table, commit_ts)]
            emptied = [(v.database, v.table) for v in made if v.commit_ts == commit_ts and empties(v)]
            emptied += [name for name, at_ts in anew.items() if commit_ts == at_ts]
            rules_by_time.append(_Rules(commit_ts, rules, emptied))
        return rules_by_time

    def _rules_at(self, table: Name, commit_ts: int) -> list[Rule]:
        made_of = rules_of if table in self._children else links_of
        try:
            return rules_at(self._app, self._source, table, max(commit_ts, self._from[table]), made_of)
        except Doubt as doubt:
            raise Doubt(doubt.why, table) from None

    def _looked(self, rules: Sequence[Rule]) -> dict[Name, Looked]:
        cells: dict[Name, dict[str, None]] = {}
        keys = {name: self._version(name, self._window.cut_ts).silver_key for name in self._children}
        for name, key in keys.items():
            cells.setdefault(name, {}).update(dict.fromkeys(key))
        for rule in rules:
            cells.setdefault(rule.parent, {}).update(dict.fromkeys(rule.parent_columns))
            if rule.child in keys:
                cells.setdefault(rule.child, {}).update(dict.fromkeys(rule.columns))
        return {
            name: Looked(self._from[name], tuple(of), keys.get(name), self._unasked(name)) for name, of in cells.items()
        }

    def _unasked(self, name: Name) -> frozenset[str]:
        """Columns of a child that its images may lack."""
        if name not in self._children:
            return frozenset()
        versions = self._app.histories[self._source].versions(*name)
        return unasked(kept_of(self._app, self._children[name]), versions)

    def _version(self, name: Name, commit_ts: int) -> TableVersion:
        version = self._app.histories[self._source].version_at(*name, commit_ts)
        if version is None:
            raise Doubt("its columns aren't known", name)
        return version

    def _in_silver(self, name: Name, commit_ts: int) -> TableVersion:
        return in_silver(kept_of(self._app, self._children[name]), self._version(name, commit_ts))

    def _masked(self, version: TableVersion, rows: pa.Table) -> pa.Table:
        name = (version.database, version.table)
        return masked(self._given.decoded.plan.masks.get((self._source, name, version.version), {}), rows)

    def _acts(self, rules: Sequence[Rule], looked: Mapping[Name, Looked]) -> list[Logged]:
        """Changes of parents whose referenced values went or changed."""
        columns: dict[Name, dict[str, None]] = {}
        for rule in rules:
            columns.setdefault(rule.parent, {}).update(dict.fromkeys(rule.parent_columns))
        wanted = {name: Looked(of.begin_ts, tuple(columns[name])) for name, of in looked.items() if name in columns}
        acting = []
        for change in self._reader.read(wanted, self._store, inserts=False):
            if change.checked and any(acts_on(rule, change) for rule in rules if rule.parent == change.table):
                acting.append(change)
            if len(acting) > limits.CASCADE_LOGGED_ROWS_MAX:
                raise Doubt(
                    "the window changes more rows of its parents than are followed in memory", parent=change.table
                )
        return acting

    def _check_shapes(self, looked: Mapping[Name, Looked]) -> None:
        """The compared parts must stay the same in the window; no rows may come by renames."""
        history = self._app.histories[self._source]
        moved = {name for move in self._window.moves for name in (move.giver, move.taker)}
        for name, compared in looked.items():
            entry = self._children.get(name)
            if entry is not None and len(entry.physical) > 1:
                raise Doubt("several tables flow into it", name)
            if entry is not None and entry.name in moved:
                raise Doubt("rows come to it, or leave it, by a rename or a partition", name)
            at = history.version_at(*name, compared.begin_ts + 1)
            inside = [v for v in history.versions(*name) if compared.begin_ts < v.commit_ts <= self._window.cut_ts]
            shapes = {_compared(version, compared) for version in (*inside, *([at] if at is not None else ()))}
            if len(shapes) > 1:
                why = f"columns of {'.'.join(name)} that foreign keys compare changed meanwhile"
                raise Doubt(why, name if compared.key is not None else None, parent=name)

    def _play(self, times: Sequence[_Rules], looked: Mapping[Name, Looked], acts: Sequence[Logged]) -> list[Effect]:
        own = {name: own_columns for name, own_columns in looked.items() if own_columns.key is not None}
        changes = [change for change in acts if change.table not in own]
        changes += self._reader.read(own, self._store, inserts=True)
        for name, entry in self._children.items():
            if name in own and exact_from(entry) is None:
                changes += chunk_rows(self._app, entry, name, own[name], self._store)
        self._positions = {change.order: change.pos for change in changes} if self._told else {}
        stored: dict[Name, dict[Any, Row]] = {name: {} for name in own}
        anew: dict[tuple[Name, Any], Logged] = {}  # of exact waves, by key
        given: dict[Rule, set[Any]] = {}
        for _ in range(limits.CASCADE_ATTEMPTS_MAX):
            keys = {name: own_columns.key or () for name, own_columns in own.items()}
            world = CascadedRows(keys, self._begins, times[0].rules, limits.CASCADE_MADE_ROWS_MAX, self._unsure())
            for name, rows in stored.items():
                for row in rows.values():
                    world.put(name, row)
            _run(world, times, sorted([*changes, *anew.values()], key=attrgetter("order")))
            missing = {rule: new for rule, forms in world.asked.items() if (new := forms - given.get(rule, set()))}
            if not missing:
                return world.effects
            for rule, forms in missing.items():
                given.setdefault(rule, set()).update(forms)
                entry = self._children[rule.child]
                for row in silver_rows(self._app, entry, rule, forms, own[rule.child], self._store):
                    stored[rule.child].setdefault(row.key, row)
                for change in exact_rows(self._app, entry, rule, forms, own[rule.child], self._store):
                    assert change.after is not None, "rows of a view"
                    anew.setdefault((rule.child, change.after.key), change)
        raise Doubt("foreign keys act on one another more often than is followed")

    def _unsure(self) -> dict[Name, int]:
        """Per child a commit_ts. Up to it, rows may be missing or newer than the log, because a snapshot read them
        meanwhile.
        """
        return self._of_each(unsure_upto)

    def _of_each(self, upto: Callable[[Application, TableWindow, Physical], int]) -> dict[Name, int]:
        children = self._children.items()
        return {name: upto(self._app, entry, Physical(self._source, *name)) for name, entry in children}

    def _check_again(self, effects: Sequence[Effect]) -> None:
        """Raise Doubt for effects on rows that silver has from beyond the window's beginning: their foreign key values
        may be newer than the change.
        """
        for effect in effects:
            entry = self._children[effect.table]
            if effect.after is not None and effect.order[0] <= entry.again_ts and exact_from(entry) is None:
                raise Doubt("a snapshot of it was read while foreign keys changed rows of it", effect.table)

    def _stage(self, effects: Sequence[Effect]) -> None:
        decoded, plans = self._given.decoded, self._given.plans
        plan = replace(decoded.plan, masks={})  # what is made has them
        stage = ChangesStage(plan, InDriver(decoded.staged.key_files, self._app.pool), limits.STAGE_BYTES)
        whole = {name: plans[entry.name].past.whole_deletes for name, entry in self._children.items()}
        for changes in list(changes_made(effects, self._in_silver, self._store, whole.__getitem__, self._masked)):
            for staged in stage.add(self._source, changes):
                self._collect(staged)
        for staged in stage.flush():
            self._collect(staged)
        if self._told:
            read = (self._source, self._reader, self._store)
            teller = Teller(self._told, self._of_each(read_meanwhile), self._positions)
            teller.tell(effects, self._version, read, self._given.by_keys)

    def _collect(self, staged: Staged) -> None:
        made = self._given.made
        match staged:
            case StagedUpsert():
                made.setdefault(staged.name, StagedTable()).take(staged)
            case StagedFile():
                name = self._app.names.logical_name(staged.database, staged.table)
                made.setdefault(name, StagedTable()).take(staged)
            case NotStaged():
                cause, place = cause_of(staged.error), met_in(self._app, self._window, staged.name)
                refused = Refused(cause, staged.message, place, needs=staged.needs, fault=staged.error)
                hold(self._app, self._window, staged.name, refused)


def _concerned(rules: Sequence[Rule], looked: Mapping[Name, Looked], acts: Sequence[Logged]) -> dict[Name, Looked]:
    """The acting tables, and those below them, whose rows are followed; nothing of the others is read."""
    acting = {change.table for change in acts}
    below, waiting = set[Name](), list(acting)
    while waiting:
        parent = waiting.pop()
        new = {rule.child for rule in rules if rule.parent == parent} - below
        below |= new
        waiting += new
    return {
        name: columns if name in below else replace(columns, key=None)
        for name, columns in looked.items()
        if name in acting or name in below
    }


def _compared(version: TableVersion, looked: Looked) -> tuple[object, ...]:
    """The parts of a version on which rules, and the key of followed rows, depend."""
    columns = tuple((c.silver, c.type, c.collation) for c in version.columns if c.silver in looked.cells)
    return (columns, version.silver_key if looked.key is not None else ())


def _run(world: CascadedRows, times: Sequence[_Rules], changes: Sequence[Logged]) -> None:
    at = 1
    for change in changes:
        while at < len(times) and times[at].commit_ts <= change.order[0]:
            for table in times[at].emptied:
                world.empty(table)
            world.use(times[at].rules)
            at += 1
        world.follow(change)
