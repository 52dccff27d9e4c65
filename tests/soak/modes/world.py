"""The world of a soak of all modes: forty tables, and what an independent reader makes of the source's log.

In:  as World.
Out: ModesWorld. compare() is verify's answer, and then each table beside SELECT and log, by its own mode.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

from tests.soak.modes.compare import Compared
from tests.soak.modes.replay import Replay
from tests.soak.modes.tables import KEY, SCHEMAS, TABLES, rules
from tests.soak.source import CHANGES, DATABASE, Sessions
from tests.soak.world import SilverDiffers, World
from tidegate.lake.files import LakeFiles
from tidegate.local.server import Server


class ModesSessions(Sessions):
    """The soak's own tables take its counters and large rows alone."""

    def __init__(self, server: Server, seed: int) -> None:
        super().__init__(server, seed)
        self.columns |= {table.name: [] for table in TABLES}

    def create(self) -> None:
        super().create()
        for table in TABLES:
            self.server.query(f"CREATE TABLE {table.name} {SCHEMAS[table.kind]}", database=DATABASE)

    def recreate(self, table: str) -> None:
        self.server.query(f"DROP TABLE {table}", database=DATABASE)
        kind, _, _ = table.partition("_")
        self.server.query(f"CREATE TABLE {table} {SCHEMAS[kind]}", database=DATABASE)
        self.columns[table].clear()

    def change(self, cursor: Any, rng: random.Random) -> None:
        table = rng.choice(TABLES)
        CHANGES[table.kind](cursor, rng, table.name, self.columns[table.name])


class ModesWorld(World):
    """Starts all, and ends all that it started, whatever happens."""

    ddl = "{statement_effects: named}"
    rules = rules(DATABASE)

    def __init__(self, folder: Path, seed: int, flavour: str, *, disturbs_apply: bool) -> None:
        super().__init__(folder, seed, flavour, disturbs_apply=disturbs_apply)
        self.replay: Replay | None = None

    def _begin(self) -> None:
        os.environ["AIRFLOW_CONN_SOAK_MASKS"] = json.dumps({"conn_type": "generic", "password": KEY})
        self.stack.callback(os.environ.pop, "AIRFLOW_CONN_SOAK_MASKS", None)
        super()._begin()

    def _writers(self, server: Server) -> Sessions:
        self.replay = Replay(server)
        return ModesSessions(server, self.seed)

    def catch_up(self) -> None:
        """The log is read before the witness lets the server purge it."""
        super().catch_up()
        if self.replay is not None and self.sessions.is_paused:
            self.replay.advance()

    def compare(self) -> str:
        """Raises Wrong."""
        said = super().compare()
        assert self.replay is not None
        compared = Compared(self.server, LakeFiles(str(self.lake)))
        for past in self.replay.pasts.values():
            compared.look(past)
        if compared.wrong:
            raise SilverDiffers("\n".join(compared.wrong), len(compared.wrong))
        return f"{said}; by modes {compared.rows} rows, {compared.versions} versions, {compared.changes} changes"
