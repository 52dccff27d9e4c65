"""A hostile run over tables in several modes: DDL, edits of their rules, other hands, kills, rebuilds, erased rows.

In:  as HostileWorld.
Out: MixedWorld. compare() holds silver and its past against SELECT and the log, as the soak of all modes does.

Some of what happens takes a table's past, or a part of it: such a table is blurred. Its rows count, and its past from
where silver says that it is known. Then it is rebuilt from bronze, which has all of its past, and all of it counts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from spark_jobs.rebuild import Rebuild, rebuild, swap
from spark_jobs.session.background import BackgroundSession
from tests.kit.spark import no_spark
from tests.soak import hands
from tests.soak.hostile import plan as hostile_plan
from tests.soak.hostile.ends import Ends
from tests.soak.hostile.tables import table_of
from tests.soak.hostile.world import HostileWorld
from tests.soak.modes.compare import CLEAR, Blurred, Compared
from tests.soak.modes.mixed import MixedSettings, mixed
from tests.soak.modes.people import People
from tests.soak.modes.replay import Replay
from tests.soak.modes.tables import KEY, Table
from tests.soak.plan import Kinds
from tests.soak.source import DATABASE
from tests.soak.witness import Wrong
from tests.soak.world import SilverDiffers
from tests.support.stored import places_of
from tidegate import tables
from tidegate.erase.erasure import Erasure, Order
from tidegate.errors import TidegateError
from tidegate.lake.silver.known_history import history_name, known_history
from tidegate.lake.standing import held
from tidegate.local.server import Server
from tidegate.standing.causes import Cause
from tidegate.tables import State

_TURNS: Final = 120
_PERSON: Final = 1_000_000  # keys that nobody else has
# A column of silver's owner ends swaps of names and rebuilds, and nobody can drop it without column mapping.
_HANDS: Final = tuple(name for name in hands.KINDS if name != hands.own_column.__name__)
_GATES: Final = (Cause.DDL_ASKS, Cause.DDL_STOPS, Cause.WRITE_FAILED)
ROUNDS: Final[Kinds] = {
    # The reader of the log takes its checksums and metadata for granted.
    **{name: drawn for name, drawn in hostile_plan.ROUNDS.items() if name != "set_global"},
    "silver_hand": (6, lambda rng: {"statements": 40, "hand": rng.choice(_HANDS), "which": rng.random()}),
    "edit_file": (10, hostile_plan.ROUNDS["edit_file"][1]),
    "rebuild": (4, hostile_plan.ROUNDS["older_silver"][1]),
    "erase": (3, hostile_plan.ROUNDS["older_silver"][1]),
}


class MixedWorld(HostileWorld):
    """blurred: tables whose past nobody can know. unheard: those whose changelog may have gaps."""

    settings: MixedSettings

    def __init__(self, folder: Path, seed: int, flavour: str) -> None:
        super().__init__(folder, seed, flavour)
        self.mixed = mixed(self._rng)
        self.blurred: set[str] = set()
        self.unheard: set[str] = set()
        self._persons = 0

    def _begin(self) -> None:
        os.environ["AIRFLOW_CONN_SOAK_MASKS"] = json.dumps({"conn_type": "generic", "password": KEY})
        self.stack.callback(os.environ.pop, "AIRFLOW_CONN_SOAK_MASKS", None)
        super()._begin()

    def _settings(self, head: str) -> MixedSettings:
        return MixedSettings(self.road.file, head, self.mixed)

    def _people(self, server: Server) -> People:
        self.replay = Replay(server, self.mixed)
        people = People(server, self._rng, self.folder, list(self.mixed.values()), self.settings.are_alike)
        for table in self.mixed.values():
            people.note(f"{table.name}: {table.mode}, rules {table.own}")
        people.begin([name for name in self.mixed if name != "keyed_3"], _TURNS)
        return people

    def names(self) -> list[str]:
        return [f"{DATABASE}.{name}" for (name,) in self.server.query("SHOW TABLES", database=DATABASE)]

    # --- rounds -------------------------------------------------------------------------------------------

    def _apply(self) -> None:
        super()._apply()
        self._look_at_held()

    def _look_at_held(self) -> None:
        """What waits, but for a person, may go on without a part of its log."""
        waits = held.held_tables(self.lake)
        self._blur(name for name, standing in waits.items() if standing.cause not in _GATES)
        self.unheard |= {_bare(name) for name in waits}
        for name, standing in waits.items():
            self.note(f"waits: {name}: {standing.cause} {standing.fault}: {standing.reason}")

    def _blur(self, names: Iterable[str]) -> None:
        self.blurred |= {_bare(name) for name in names}

    def _edit_file(self, edits: int) -> None:
        super()._edit_file(edits)
        self._blur(self.settings.edited)
        self.unheard |= self.settings.edited
        self.settings.edited.clear()

    def _silver_hand(self, hand: str, which: float) -> None:
        super()._silver_hand(hand, which)
        self._blur(table_of(path) for path in self.touched)
        if hand == "lose":
            self._blur([self._silver(which)])

    def _snapshot(self, asked: bool, which: float) -> None:
        names = [name for name in self.names() if name not in self.settings.excluded]
        if asked and names:
            self._blur([names[int(which * len(names))]])
        super()._snapshot(asked, which)

    def _rebuild(self, which: float) -> None:
        """Of one that is whole, silver must be the same."""
        names = self.names()
        name = names[int(which * len(names))] if names else ""
        self.road.capture()
        self._apply()
        state = held.last_states(self.lake).get(name)
        if state is None or state.state is State.ACTIVE:
            self._rebuilt(name, compare=_bare(name) not in self.blurred)

    def _rebuilt(self, name: str, *, compare: bool) -> bool:
        """Whether it was; a refusal says why."""
        lines: list[str] = []
        try:
            plan = Rebuild.plan(self.road.pipeline, self.lake, name, "", "")
            code = rebuild(plan, BackgroundSession(lambda: self.spark), compare=compare, report=lines.append)
            if code == 0:
                swap(plan, BackgroundSession(no_spark), report=lines.append)
        except TidegateError as error:
            self.note(f"no rebuild of {name}: {error}".replace("\n", " "))
            return False
        self.note(f"rebuilt {name}: {code} {lines}")
        if code:
            raise Wrong(f"a rebuild of {name} differs: {lines}")
        return True

    def _erase(self, which: float) -> None:
        """A person's row comes, changes and goes at the source; then out of the lake."""
        here = [table for name, table in self.settings.tables.items() if table.kind == "keyed" and self._is_there(name)]
        if not here:
            return
        table, name = here[int(which * len(here))], here[int(which * len(here))].name
        self._persons += 1
        key, words = _PERSON + self._persons, f"the {self._persons}th person who leaves"
        for text in (words, f"{words} again"):
            self._say(f"REPLACE INTO {name} (id, a, b, at) VALUES ({key}, '{text}', 600, NOW(6))")
            self.road.capture()
            self._apply()
        if not self._is_there(name):
            return
        places = places_of(self.folder / "lake", words)
        if table.has("masked") and name not in self.blurred and not places <= {"bronze"}:
            raise Wrong(f"{name} is masked, and {places} have a plain value of it")
        self._say(f"DELETE FROM {name} WHERE id = {key}")
        self.road.capture()
        self._apply()
        try:
            order = Order(f"{DATABASE}.{name}", f"id = {key}", 5)
            Erasure(self.road.pipeline, self.lake, lambda _: self.road.info, order, self.road.lines.append).run()
        except TidegateError as error:
            self.note(f"not erased from {name}: {error}".replace("\n", " "))
            return
        self.note(f"erased from {name}")
        if left := places_of(self.folder / "lake", words):
            raise Wrong(f"erased from {name}, and {left} still have it")
        self.replay.advance()
        self.replay.pasts[name].forget((key,))
        self.copies.made.clear()  # an older copy still has the person

    def _is_there(self, name: str) -> bool:
        dotted = f"{DATABASE}.{name}"
        state = held.last_states(self.lake).get(dotted)
        kept = dotted in self.names() and dotted not in self.settings.excluded
        return kept and (state is None or state.state is State.ACTIVE)

    def _say(self, statement: str) -> None:
        self.note(statement)
        self.server.query(statement, database=DATABASE)

    # --- the end ------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """What waits for a changed rule or mode is rebuilt; the rest as in every hostile run."""
        self.people.end()
        self.settings.calm()
        self.road.again()
        self.road.capture()
        self._apply()
        for name, standing in held.held_tables(self.lake).items():
            if standing.cause not in _GATES:
                self._rebuilt(name, compare=False)
        self._apply()
        for name, standing in held.held_tables(self.lake).items():
            if standing.cause not in _GATES and not standing.lacks_rows:
                self._give_up_past(name)
        super().settle()
        self._look_at_held()

    def _give_up_past(self, name: str) -> None:
        """Of a table that waits with it, where no rebuild goes past that."""
        path = tables.silver_path(DATABASE, _bare(name))
        columns = {field["name"] for field in self.lake.log(path).state().schema["fields"]}
        if past := columns & {tables.IS_CURRENT, tables.DELETED}:
            condition = f"NOT {tables.IS_CURRENT}" if tables.IS_CURRENT in past else tables.DELETED
            self.spark.sql(f"DELETE FROM delta.`{self.lake.root}/{path}` WHERE {condition}").collect()
            self.note(f"its past is deleted: {name}")

    def compare(self) -> str:
        """How many rows, versions and changes, in words. Raises SilverDiffers."""
        if wrong := Ends(self.server, self.road, self.folder, {table_of(path) for path in self.wider}).said():
            raise SilverDiffers("\n".join(wrong), len(wrong))
        self.replay.advance()
        for name, table in self.settings.tables.items():
            self.replay.pasts[name].table = table
        waits = {_bare(name) for name in held.held_tables(self.lake)}
        here = [name for name in self.mixed if f"{DATABASE}.{name}" in self.names() and name not in waits]
        first = self._compared(here)
        whole = [name for name in here if name in self.blurred and self._rebuilt(f"{DATABASE}.{name}", compare=False)]
        self._apply()
        self.blurred -= set(whole)
        second = self._compared(whole)
        counts = f"{first.rows} rows, {first.versions} versions, {first.changes} changes; {len(waits)} wait"
        again = f"{second.rows} rows, {second.versions} versions of {len(whole)} that are rebuilt"
        return f"{len(here)} tables with {counts}; {again}"

    def _compared(self, names: Iterable[str]) -> Compared:
        compared = Compared(self.server, self.lake)
        for name in names:
            compared.look(self.replay.pasts[name], self._blur_of(self.replay.pasts[name].table))
        if compared.wrong:
            raise SilverDiffers("\n".join(compared.wrong), len(compared.wrong))
        return compared

    def _blur_of(self, table: Table) -> Blurred:
        if table.name not in self.blurred | self.unheard:
            return CLEAR
        dotted = f"{DATABASE}.{table.name}"
        log = self.lake.log(tables.silver_path(DATABASE, table.name))
        known = known_history(log, log.state(), history_name("road", dotted)) if table.has("history") else None
        return Blurred(
            table.name in self.blurred, (known.since_ts or None) if known else None, table.name in self.unheard
        )


def _bare(name: str) -> str:
    return name.rpartition(".")[2].rpartition("/")[2]
