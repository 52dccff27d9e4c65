"""The hostile run's companions beside a replay: between two windows one of them does something.

In:  a server, Spark, a folder, a seed.
Out: ReplayCompanions: between() windows; variable() for sessions; settle() and unnamed() at the end. The file
     companions.log says what was done.
"""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

from tests.replay.compare import tables_at
from tests.soak.copies import Copies, login
from tests.soak.hostile.companions import Companions, HostileRoad
from tests.soak.hostile.ends import Ends
from tests.soak.hostile.plan import ROUNDS
from tests.soak.hostile.settings import Settings
from tests.soak.hostile.variables import session_variable
from tests.soak.plan import Fault, plan
from tidegate.local.server import Server
from tidegate.tables import WATERMARK_DATABASE

_KINDS: Final = (
    *("kill_apply", "edit_file", "silver_hand", "older_silver", "set_global", "maintain", "backup", "restore"),
)
_VARIABLE_SHARE: Final = 0.03
# Names that a pattern of the pipeline file says as they are.
_PLAIN: Final = re.compile(r"\w+")


def companions_of(seed: int, count: int) -> list[Fault]:
    """One for each window."""
    return plan(seed, count, {kind: ROUNDS[kind] for kind in _KINDS})


class ReplayCompanions(Companions):
    """The answer for a pipeline that keeps all that the server has."""

    def __init__(self, server: Server, spark: SparkSession, folder: Path, seed: int) -> None:
        super().__init__(random.Random(f"{seed} companions"))
        self.server, self.spark, self.folder = server, spark, folder
        self.road = HostileRoad(server, folder, include="*.*", start="earliest")
        head = (
            f"pipeline: road\nlake: {{path: {folder / 'lake'}}}\n"
            f"sources: {{one: {{conn_id: road_one, flavour: {server.flavour}, start: earliest}}}}\n"
        )
        self.settings = Settings(self.road.file, head, ["*.*"])
        self.road.again()
        self.copies = Copies(folder, self.road.file, {"AIRFLOW_CONN_ROAD_ONE": login(server)}, self.note)
        for rights in (f"CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.*", "LOCK TABLES ON *.*"):
            server.query(f"GRANT {rights} TO '{server.user}'@'%'")

    def note(self, line: str) -> None:
        with (self.folder / "companions.log").open("a") as log:
            log.write(f"{line}\n")

    def work(self, statements: int) -> None:
        """The next files do."""

    def names(self) -> list[str]:
        return [".".join(name) for name in tables_at(self.server) if all(map(_PLAIN.fullmatch, name))]

    def between(self, companion: Fault) -> None:
        """Raises Wrong when a job ends otherwise than it may."""
        self.note(f"--- {companion}")
        parameters: dict[str, Any] = dict(companion.parameters)
        parameters.pop("statements")
        getattr(self, f"_{companion.kind}")(**parameters)

    def variable(self) -> bytes:
        """Now and then a statement that sets one of a session's; else nothing."""
        if self._rng.random() > _VARIABLE_SHARE:
            return b""
        return session_variable(self._rng, mariadb=self.server.flavour == "mariadb").encode()

    def unnamed(self) -> dict[str, str]:
        """Tables that wait for what a snapshot, or a person, should have ended."""
        return Ends(self.server, self.road, self.folder, ()).waiting()
