"""`make replay FILES=n SEED=s FLAVOUR=mariadb|mariadb118|mysql9 HOSTILE=1`: test files, compared in silver.

In:  --files, --seed (a random one when empty), --flavour, --every (files between two applies), --only (an expression on
     the files' paths), --hostile (between two applies apply is killed, people edit the pipeline file, write to silver,
     lose it or put older copies back, set the server's variables; sessions set their own).
Out: on stdout how many tables are equal, held (by reason) and different, and each that differs or waits for what a
     snapshot or a person's release should have ended; exit code 0 when there is none, 1 else. The folder with
     everything stays when something is wrong or with --keep.

Statements are the servers' own tests: what nobody who writes a replication tool would think of. The server is the
oracle: what it accepted it has, and its SELECT says what silver must have.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import re
import shutil
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from tests.kit import mariadb118, mysql9
from tests.kit.road import Road
from tests.kit.spark import session
from tests.readers.lake import check
from tests.readers.lake import report as readers_report
from tests.replay.companions import ReplayCompanions, companions_of
from tests.replay.compare import Found, compare, use_memory_tables
from tests.replay.player import Player
from tests.replay.scripts import chosen, install, label, statements, text_of
from tests.soak.witness import Wrong
from tests.support.servers import ROOT
from tidegate.connections import variable
from tidegate.errors import TidegateError
from tidegate.local import mariadb
from tidegate.local.server import Server

_WRONG: Final = ("different", "ghost", "missing", "waits")
_HELD_SHARE_MAX: Final = 0.02
# What a reason says of one table or one statement alone.
_OWN: Final = re.compile(r"`[^`]*`|'[^']*'|\([^()]*\)|\S*[:.]\S*|\d+")


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """What a run is told; argv: the command line's when None."""
    parser = argparse.ArgumentParser(prog="make replay", description=__doc__)
    parser.add_argument("--files", type=int, default=30)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--flavour", choices=("mariadb", "mariadb118", "mysql9"), default="mariadb")
    parser.add_argument("--every", type=int, help="files between two applies; 10, of a hostile run 4")
    parser.add_argument("--only", default="", help="only files whose path matches this expression")
    parser.add_argument("--hostile", action="store_true", help="others do something between two applies")
    parser.add_argument(
        "--readers", action="store_true", help="read the lake by all readers in the end (tests/readers)"
    )
    parser.add_argument("--keep", action="store_true", help="keep the folder when all was well, too")
    given = parser.parse_args(argv)
    given.every = given.every or (4 if given.hostile else 10)
    return given


def _server(flavour: str, folder: Path) -> Server:
    if flavour == "mariadb":
        return mariadb.MariaDB(folder / "server", mariadb.install(ROOT))
    if flavour == "mariadb118":
        return mariadb118.MariaDB118(folder / "server", mariadb118.install(ROOT))
    return mysql9.MySQL9(folder / "server", mysql9.install(ROOT))


def replay(given: argparse.Namespace, server: Server, spark: SparkSession, folder: Path) -> list[Found]:
    """Play the files, capture and apply beside them, compare at the end."""
    tree = install(ROOT)
    files = chosen(tree, given.seed, given.files, given.only)
    beside = ReplayCompanions(server, spark, folder, given.seed)
    player = Player(server, given.seed, beside.variable if given.hostile else bytes)
    companions = iter(companions_of(given.seed, len(files)) if given.hostile else ())
    for at, path in enumerate(files, 1):
        player.play(label(tree, path), statements(text_of(tree, path)))
        if at % given.every == 0 or at == len(files):
            if companion := next(companions, None):
                print(companion, file=sys.stderr, flush=True)
                beside.between(companion)
            if at == len(files):
                use_memory_tables(server)
            _apply(beside.road, spark, player, at)
    wrong_before = [] if given.hostile else _waits_yet(compare(server, folder / "lake"))
    beside.settle()
    unnamed = beside.unnamed()
    results = {item.table: item for item in compare(server, folder / "lake")}
    results |= {name: Found(name, "waits", words) for name, words in unnamed.items()}
    return list((results | {item.table: item for item in wrong_before}).values())


def _waits_yet(found: list[Found]) -> list[Found]:
    """Say what a person and snapshots are to end now; the tables that no wait explains."""
    for reason, count in _reasons(found).most_common():
        print(f"waits {count}: {reason}", file=sys.stderr)
    return [item for item in found if item.outcome in _WRONG]


def _apply(road: Road, spark: SparkSession, player: Player, files: int) -> None:
    began = time.monotonic()
    road.capture()
    captured = time.monotonic()
    road.apply(spark)
    played = player.played
    print(
        f"{files} files: {played.accepted} of {played.sent} statements accepted, {len(played.databases)} databases,"
        f" {played.lost_connections} lost connections; capture {captured - began:.0f} s,"
        f" apply {time.monotonic() - captured:.0f} s",
        file=sys.stderr,
        flush=True,
    )


def _reasons(found: list[Found]) -> collections.Counter[str]:
    return collections.Counter(_OWN.sub("_", item.detail)[:100] for item in found if item.outcome == "held")


def report(found: list[Found]) -> int:
    """Print what came of it; the exit code."""
    outcomes = collections.Counter(item.outcome for item in found)
    rows = sum(item.rows for item in found if item.outcome == "equal")
    for reason, count in _reasons(found).most_common():
        print(f"held {count}: {reason}")
    for item in found:
        if item.outcome == "held":
            print(f"{item.table} is held: {item.detail[:300]}")
        if item.outcome in _WRONG:
            print(f"{item.outcome.upper()} {item.table}, {item.rows} rows: {item.detail}")
    held = outcomes["held"]
    there = held + outcomes["equal"] + sum(outcomes[name] for name in _WRONG)
    told = ", ".join(f"{count} {name}" for name, count in outcomes.most_common())
    share = held / there if there else 0.0
    print(f"replay: {len(found)} tables: {told}; {rows} rows equal, {share:.1%} held (at most {_HELD_SHARE_MAX:.0%})")
    return int(any(outcomes[name] for name in _WRONG))


def main() -> int:
    given = arguments()
    os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".tidegate" / "numba"))
    folder = Path(tempfile.mkdtemp(prefix="tidegate-replay-"))
    print(f"seed {given.seed}, {given.flavour}, {given.files} files, in {folder}", file=sys.stderr, flush=True)
    try:
        with _server(given.flavour, folder) as server, session() as spark:
            login = f"mysql://{server.user}:{server.password}@{server.host}:{server.port}/"
            os.environ[variable("road_one")] = login  # apply asks for generated columns missing in the log
            found = replay(given, server, spark, folder)
            read = check(folder / "lake", spark, copy=folder / "copy") if given.readers else []
    except (TidegateError, Wrong) as error:
        print(f"replay stopped: {type(error).__name__}: {error}\nstate in {folder}")
        return 1
    (folder / "found.json").write_text(json.dumps([asdict(item) for item in found], indent=1))
    code = report(found)
    if read and readers_report(read):
        code = 1
    again = f"make replay FILES={given.files} SEED={given.seed} FLAVOUR={given.flavour}"
    again += " HOSTILE=1" if given.hostile else ""
    if code:
        print(f"again: {again}{f' ONLY={given.only}' if given.only else ''}; state in {folder}")
    elif not given.keep:
        shutil.rmtree(folder)
    return code


if __name__ == "__main__":
    sys.exit(main())
