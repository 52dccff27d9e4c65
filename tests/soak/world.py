"""Everything a soak runs: the source, the network before it, capture and who starts it again, apply, the witness.

In:  a folder, a seed, a flavour.
Out: World, a context manager; faults.py breaks parts of it, __main__.py lets it settle and compares.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from tests.soak.applies import Applies
from tests.soak.capturing import Capture, catch_up, until
from tests.soak.copies import Copies
from tests.soak.disk import Disk
from tests.soak.hands import Hands
from tests.soak.kept import Causes, Kept
from tests.soak.reading import read_again
from tests.soak.shots import Shots
from tests.soak.source import DATABASE, Sessions
from tests.soak.witness import Seen, Witness, Wrong
from tests.support.fault_proxy import FaultProxy
from tests.support.nursery import Nursery
from tests.support.own_server import own_server
from tests.support.whole import Whole
from tidegate import config
from tidegate.errors import HoldChangedError
from tidegate.lake.files import LakeFiles
from tidegate.lake.standing import held
from tidegate.local.server import Server
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.standing.standing import Standing
from tidegate.tables import WATERMARK_DATABASE, State
from tidegate.verify.report import Outcome
from tidegate.verify.under_way import VerifyOptions
from tidegate.verify.verification import verify

ROOT: Final = Path(__file__).resolve().parents[2]
_APPLY_SECONDS: Final = 30  # then another one is started
# Small, so that what takes hours elsewhere happens every few seconds: rotation of the value log, full queues, returns.
_CAPTURE: Final = (
    "{land_seconds: 0.2, heartbeat_seconds: 0.5, segment_bytes: 65536, queue_bytes: 1048576, slow_seconds: 0.2,"
    " hold_seconds: 0.5, return_seconds: 0.5, value_log_bytes_max: 67108864, value_log_reserve_bytes: 0}"
)


class Memory(NamedTuple):
    """What is known of a lake when a backup of it begins."""

    seen: Seen
    causes: Causes
    touched: frozenset[str]


class World(Whole):
    """Starts all, and ends all that it started, whatever happens."""

    ddl = "{drop_column: ask, statement_effects: named}"
    rules = ""  # more keys of `tables`

    def __init__(self, folder: Path, seed: int, flavour: str, *, disturbs_apply: bool) -> None:
        super().__init__()
        self.folder, self.seed = folder, seed
        self.lake = folder / "lake"
        self.server = own_server(flavour, folder / "server")
        self.disturbs_apply = disturbs_apply

    def _begin(self) -> None:
        self.disk = self.stack.enter_context(Disk(self.lake / "bronze"))
        nursery = self.stack.enter_context(Nursery())
        server = self.stack.enter_context(self.server)
        self.proxy = self.stack.enter_context(FaultProxy(server.host, server.port))
        self.kept = Kept(
            self.folder / "soak.yaml",
            f"pipeline: soak_{os.getpid()}\nlake: {{path: {self.lake}}}\n"
            f"sources: {{one: {{conn_id: one, flavour: {server.flavour}, start: now}}}}\n"
            f"capture: {_CAPTURE}\napply: {{mode: batch, run_for_seconds: {_APPLY_SECONDS}}}\n"
            f"ddl: {self.ddl}\nmaintain: {{keep_bronze_days: 1, keep_cuts_hours: 1}}\n"
            "snapshot: {mode: manual}\n",  # a table that is held meanwhile stays so: its faults say why
            self.rules,
        )
        self.applies = self.stack.enter_context(Applies(self.folder / "soak.yaml", self.folder / "apply.log"))
        self.hands = Hands(self.lake, self.applies)
        login = {"AIRFLOW_CONN_ONE": f"mysql://{server.user}:{server.password}@{self.proxy.host}:{self.proxy.port}"}
        self.copies = Copies[Memory](self.folder, self.folder / "soak.yaml", login, self.applies.say)
        server.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{server.user}'@'%'")
        self.shots = self.stack.enter_context(Shots(self.folder / "soak.yaml", login, self.folder / "snapshot.log"))
        self.capture = Capture(nursery, self.folder, login)
        self.witness = Witness(self.lake, server, "one")
        self.sessions = self._writers(server)
        self.stack.enter_context(self.capture)
        until(self.capture, self.witness, lambda: self.witness.look()[1] > 0, "capture doesn't begin")
        self.sessions.create()
        self.stack.enter_context(self.sessions)

    def _writers(self, server: Server) -> Sessions:
        return Sessions(server, self.seed)

    # --- settle and compare -------------------------------------------------------------------------------

    def settle(self) -> None:
        """Nothing is broken and the source is quiet: bronze gets all of it, and every transaction is there once."""
        self.proxy.mend()
        for name in ("stall", "full", "arm"):
            (self.capture.gate / name).unlink(missing_ok=True)
        self.sessions.pause()
        self.shots.kill()  # its marks would move the log's end while silver is compared
        self.catch_up()
        self.witness.settle()
        self.catch_up()
        self.capture.rivals = 0

    def catch_up(self) -> None:
        catch_up(self.server, self.capture, self.witness)

    def totals(self) -> tuple[int, int, int]:
        """Transactions, and of these lost and doubled."""
        witness = getattr(self, "witness", None)
        return (witness.transactions, witness.lost, witness.doubled) if witness else (0, 0, 0)

    @property
    def captures(self) -> int:
        """How many were started."""
        return self.capture.starts

    def resume(self) -> None:
        self.sessions.resume()

    def check(self) -> None:
        """Raises Wrong when a part of this has failed where it mustn't."""
        if self.capture.failure:
            raise Wrong(self.capture.failure)

    # --- silver and the lake ------------------------------------------------------------------------------

    def silver_of(self, table: str) -> str:
        return f"silver/{DATABASE}/{table}"

    def explain(self, table: str, cause: str) -> None:
        self.kept.explain(table, cause)

    def remembered(self) -> Memory:
        return Memory(self.witness.seen(), self.kept.causes(), frozenset(self.hands.touched))

    def keep(self, memories: list[Memory]) -> None:
        self.witness.kept = [memory.seen for memory in memories]

    @contextmanager
    def no_captures(self) -> Iterator[None]:
        self.capture.end()
        try:
            yield
        finally:
            self.capture.go_on()

    def put_back(self, memory: Memory, unlike: frozenset[str]) -> None:
        """Raises Wrong."""
        hurt = {f"{DATABASE}.{table}" for table, causes in memory.causes.of.items() if "silver" in causes}
        if strange := unlike - hurt:
            raise Wrong(f"put back, and not as published, although nobody had hurt them: {sorted(strange)}")
        self.witness.put_back(memory.seen)
        self.kept.put_back(memory.causes)
        self.hands.touched |= memory.touched

    # --- apply --------------------------------------------------------------------------------------------

    def tend(self) -> None:
        """Let an apply run beside everything else, always. Raises Wrong."""
        self.applies.tend()
        if self.disturbs_apply and not self.applies.applies():
            self.applies.start(mode="micro_batch")

    def held(self) -> dict[str, Standing]:
        """Silver table -> why it is held."""
        return held.held_tables(LakeFiles(str(self.lake)))

    def approve(self) -> None:
        """A person agrees to each DDL that waits for it."""
        lake = LakeFiles(str(self.lake))
        for event in held.questions(lake).values():
            with suppress(HoldChangedError):  # apply runs beside it
                held.release(lake, event)

    def compare(self) -> str:
        """Apply to the end: silver against the source's own rows; then mend what is held, and all of it once more.

        How many rows, in words. Raises Wrong.
        """
        self.applies.to_the_end()
        self._read_touched()
        rows, waiting = self._verify()
        if not waiting:
            self.kept.settled()
            return f"{rows} rows equal in silver"
        while asked := held.questions(LakeFiles(str(self.lake))):
            self.approve()
            self.applies.to_the_end()
            asked_again = held.questions(LakeFiles(str(self.lake)))
            if any(name in asked_again and asked_again[name].place == one.place for name, one in asked.items()):
                raise Wrong(f"still asked for after it was approved: {sorted(asked)}")
        there = self._tables()
        for name in there & self.held().keys():
            self.server.query(f"TRUNCATE TABLE {name}", database=DATABASE)
        self.catch_up()
        self.applies.to_the_end()
        self._read_touched()
        after, held_yet = self._verify()
        # One that isn't at the source any more goes on when it is made there again: nobody can truncate it.
        still = [told for told in held_yet if told.partition(":")[0] in there]
        if still:
            raise Wrong(f"held although approved and truncated: {still}")
        self.kept.settled()
        return f"{rows} rows equal in silver, {after} without holds ({'; '.join(sorted(waiting))})"

    def _read_touched(self) -> None:
        """Those that somebody wrote to, unless they wait or are left out: these stay so. And those without a key whose
        reader was killed: they lack rows until all are read. Raises Wrong.
        """
        held_now, tables = self.held(), self._tables()
        states = held.last_states(LakeFiles(str(self.lake))).items()
        unread = {name.partition(".")[2] for name, it in states if it.state is State.SNAPSHOT}
        names = {name: f"{DATABASE}.{name}" for name in (self.hands.touched | unread) - set(self.kept.excluded)}
        ready = {name for name, dotted in names.items() if dotted in tables and dotted not in held_now}
        if ready:
            dotted = [names[name] for name in ready]
            read_again(dotted, self.folder / "soak.yaml", self.shots, self.applies, self.catch_up)
            self.hands.touched -= ready

    def _tables(self) -> set[str]:
        """`database.table` of what the source has."""
        return {f"{DATABASE}.{name}" for (name,) in self.server.query("SHOW TABLES", database=DATABASE)}

    def _verify(self) -> tuple[int, list[str]]:
        """How many rows are equal, and which tables are held for which reason."""
        server = self.server
        info = ConnectionInfo(host=server.host, port=server.port, user=server.user, password=server.password)
        pipeline = config.load(self.folder / "soak.yaml")
        report = verify(pipeline, {"one": info}, LakeFiles(str(self.lake)).root, {}, VerifyOptions(timeout_seconds=60))
        events = self.held()
        if unexplained := self.kept.unexplained(events):
            raise SilverDiffers(f"held for nothing: {'; '.join(unexplained)}", len(unexplained))
        bad = [
            one
            for one in report.tables
            if one.outcome not in (Outcome.EQUAL, Outcome.DROPPED)
            and (one.outcome not in (Outcome.HELD, Outcome.WAITS) or one.silver not in events)
        ]
        if bad:
            told = "; ".join(f"{one.table} {one.outcome}: {one.reason} {one.differences[:2]}" for one in bad)
            raise SilverDiffers(f"{len(bad)} tables of silver: {told}", len(bad))
        there = {one.silver for one in report.tables}
        waiting = [f"{name}: {event.reason}" for name, event in events.items() if name in there]
        return sum(found.source_rows for found in report.tables), waiting


class SilverDiffers(Wrong):
    """tables: how many aren't the source's."""

    def __init__(self, what: str, tables: int) -> None:
        super().__init__(what)
        self.tables = tables
