"""Requests to the store of a lake on S3, counted by the server that answers them.

In:  a scratch folder, seconds of the quiet part; the demo's MariaDB, VersityGW with an access log.
Out: rows: requests of a window over 1 and 50 changed tables, of new tables, of a checkpoint, of the page's look; of a
     quiet minute and of a busy one of capture and apply, processes of their own with their defaults; dollars a day.

`python -m benchmarks.store_requests` alone: about three minutes.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "include")]

from benchmarks.figures import Row  # noqa: E402
from benchmarks.gateway import Gateway, Request, by_kind, dollars, told  # noqa: E402
from benchmarks.lakes import connection_info  # noqa: E402
from benchmarks.micro_batch import Job, Workload, change, environment  # noqa: E402
from tests.kit.reached import run_to  # noqa: E402
from tests.kit.turns import Turns  # noqa: E402
from tidegate import config  # noqa: E402
from tidegate.delta.checkpoints.write import write  # noqa: E402
from tidegate.lake.cuts.published import known_cuts  # noqa: E402
from tidegate.lake.figures import status  # noqa: E402
from tidegate.lake.files import LakeFiles  # noqa: E402
from tidegate.local import mariadb  # noqa: E402
from tidegate.local.server import Server  # noqa: E402
from tidegate.mysql.capturing.reader import binlog_run  # noqa: E402
from tidegate.mysql.facts.server_facts import current_position  # noqa: E402
from tidegate.tables import silver_path  # noqa: E402

NAME: Final = "requests"
CHANGED: Final = 50
IN_A_ROW: Final = 10
_TABLES: Final = [f"t{number}" for number in range(2 * CHANGED)]
_DAY_MINUTES: Final = 1440
_RUN_SECONDS: Final = 3600.0
_WAIT_SECONDS_MAX: Final = 120.0
_WARM_SECONDS: Final = 15.0
_BUSY_RATE: Final = 100
_BUSY_TABLES: Final = 4
_PIPELINE: Final = """
pipeline: {name}
lake: {{path: 's3://lake/{name}', conn_id: the_lake}}
sources: {{one: {{conn_id: {name}, flavour: mariadb, start: now}}}}
tables: {{include: ['{name}.*']}}
capture: {{value_log_path: {folder}/value_log}}
apply: {{mode: micro_batch}}
"""


class World:
    """A source, a store, a pipeline between them."""

    def __init__(self, folder: Path, server: Server, gateway: Gateway) -> None:
        self.folder, self.server, self.gateway = folder, server, gateway
        self.file = folder / f"{NAME}.yaml"
        self.file.write_text(_PIPELINE.format(name=NAME, folder=folder))
        self.pipeline = config.load(self.file)
        self.lake = LakeFiles(self.pipeline.lake.path, gateway.options("apply"))
        Workload.create(server, NAME, _TABLES)

    def capture(self) -> None:
        """Up to where the server is."""
        with self.server.connect() as connection, connection.cursor() as cursor:
            goal = current_position(cursor)
        options = self.gateway.options("capture")
        run = binlog_run(
            self.pipeline, "one", connection_info(self.server), self.folder / "state", storage_options=options
        )
        run_to(run, goal, _WAIT_SECONDS_MAX, idle_seconds=3.0, heartbeat=True)

    def touch(self, tables: list[str]) -> None:
        """A row into each."""
        with self.server.connect(NAME) as connection, connection.cursor() as cursor:
            for table in tables:
                change(cursor, table, time.time_ns() // 1000, 1)


def windows(world: World) -> list[Row]:
    """What a window asks: by tables that change, by the length of the log, by tables that don't change."""
    world.capture()
    turns = Turns(world.pipeline, world.lake)

    def window(tables: list[str]) -> Counter[str]:
        """Of one window with changes of these tables, the look that finds it included."""
        world.touch(tables)
        world.capture()
        versions = turns.window(world.gateway.taken)
        assert len(versions) == len(tables), versions
        return by_kind(world.gateway.taken())

    new, one, many = window(_TABLES), window(_TABLES[:1]), window(_TABLES[:CHANGED])
    row = [window(_TABLES[:1]) for _ in range(IN_A_ROW)]
    turns.end()
    world.gateway.taken()
    silver = world.lake.log(silver_path(NAME, _TABLES[0]))
    write(silver.store, silver.known.version, now_ms=int(time.time() * 1000))
    checkpoint = by_kind(world.gateway.taken())
    status.table_statuses(LakeFiles(world.lake.root, world.gateway.options("page")))
    status.sources(LakeFiles(world.lake.root, world.gateway.options("page")))
    page = by_kind(world.gateway.taken())
    each = (many.total() - one.total()) / (CHANGED - 1)
    totals = [kinds.total() for kinds in row]
    return [
        _row("1 table changes", one, f"and {len(_TABLES) - 1} don't"),
        _row(f"{CHANGED} tables change", many, f"{each:.1f} for each further table"),
        _row(f"{len(_TABLES)} new tables", new, f"{new.total() / len(_TABLES):.1f} each"),
        Row(
            "requests_in_a_row",
            f"{IN_A_ROW} windows of 1 table, one after the other: the last",
            "requests",
            [totals[-1]],
            note=f"each: {totals}; every eighth joins small files",
        ),
        _row("a table's checkpoint", checkpoint, f"of {silver.known.version + 1} commits", window=False),
        _row("a look of the page at all tables and sources, in a new process", page, "", window=False),
    ]


def _row(what: str, kinds: Counter[str], note: str, *, window: bool = True) -> Row:
    title = f"a window in which {what}" if window and "change" in what else what
    key = "requests_" + what.replace(" ", "_").lower()
    notes = [told(kinds), note, f"${dollars(kinds) * 1e6:.0f} a million"]
    return Row(key, title, "requests", [kinds.total()], note="; ".join(filter(None, notes)))


def minutes(world: World, seconds: float) -> list[Row]:
    """A quiet and a busy minute of capture and apply as processes, with all that they do by themselves."""
    jobs: list[Job] = []
    try:
        for name in ("capture", "apply"):
            found = environment(ROOT, world.server, NAME)
            extra = {"conn_type": "generic", "extra": world.gateway.options(name)}
            found["AIRFLOW_CONN_THE_LAKE"] = json.dumps(extra)
            jobs.append(Job(name, world.file, found, _RUN_SECONDS))
        watched = LakeFiles(world.lake.root, world.gateway.options("watch"))
        before = max(known_cuts(watched), default=0)
        world.touch(_TABLES[:1])
        end = time.monotonic() + _WAIT_SECONDS_MAX
        while max(known_cuts(watched), default=0) == before:
            for job in jobs:
                job.check_alive()
            assert time.monotonic() < end, "nothing was applied"
            time.sleep(0.5)
        time.sleep(_WARM_SECONDS)
        quiet = _counted(world, seconds)
        with Workload(world.server, NAME, _BUSY_RATE, _TABLES[:_BUSY_TABLES]):
            time.sleep(_WARM_SECONDS)
            cuts = set(known_cuts(watched))
            busy = _counted(world, seconds)
            made = len(set(known_cuts(watched)) - cuts)
    except BaseException:
        for job in jobs:
            print(*(text for _, text in job.lines[-20:]), sep="\n", file=sys.stderr)
        raise
    finally:
        for job in jobs:
            job.end()
    return [
        *_minute("quiet", "a quiet minute", quiet, seconds, ""),
        *_minute(
            "busy",
            f"a minute of {_BUSY_RATE} changes a second over {_BUSY_TABLES} tables",
            busy,
            seconds,
            f"{made * 60 / seconds:.0f} windows",
        ),
    ]


def _counted(world: World, seconds: float) -> list[Request]:
    world.gateway.taken()
    time.sleep(seconds)
    return [request for request in world.gateway.taken() if request.who in ("capture", "apply")]


def _minute(key: str, what: str, requests: list[Request], seconds: float, note: str) -> list[Row]:
    rows, spent = [], 0.0
    for who in ("capture", "apply"):
        kinds = by_kind([request for request in requests if request.who == who])
        spent += dollars(kinds) * 60 / seconds * _DAY_MINUTES
        notes = [told(kinds) + f" in {seconds:.0f} s", note if who == "apply" else ""]
        minute = kinds.total() * 60 / seconds
        row = Row(f"requests_{key}_{who}", f"{who}, {what}", "requests", [minute])
        row.note = "; ".join(filter(None, notes))
        rows.append(row)
    day = Row(f"requests_{key}_dollars", f"{what}, all day", "dollars a day", [spent])
    day.note = "S3 Standard, us-east-1: $0.005 for 1000 PUT or LIST, $0.0004 for 1000 GET or HEAD; storage apart"
    return [*rows, day]


@contextmanager
def running(folder: Path) -> Iterator[World]:
    """MariaDB, VersityGW, nothing else yet."""
    with Gateway(folder / "store") as gateway, mariadb.MariaDB(folder / "mariadb", mariadb.install(ROOT)) as server:
        yield World(folder, server, gateway)


def measure(folder: Path, seconds: float) -> list[Row]:
    """All rows."""
    with running(folder) as world:
        return [*windows(world), *minutes(world, seconds)]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for row in measure(Path(folder), 60.0):
            print(f"{row.title}: {row.ours[0]:.4g} {row.unit} ({row.note})", flush=True)


if __name__ == "__main__":
    main()
