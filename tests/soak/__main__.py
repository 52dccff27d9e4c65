"""`make soak FAULTS=n SEED=s`: random faults over a busy source, and whether anything was lost, doubled or wrong.

In:  --faults, --seed (a random one when empty), --flavour mariadb|mysql9, --apply-every, --settle-every; --sources: of
     several servers, whose flavours are either in turn, the shards of a table flow together (shards/). --hostile:
     rounds of whatever a server takes, beside edits of the pipeline file, other writers of silver and kills (hostile/).
     --modes: forty tables in every mode of silver, against an independent reader of the log (modes/); with --hostile
     a dozen tables in several modes each, whose rules are edited, and hostile rounds.
Out: on stdout one line, `soak: n faults, T transactions, 0 lost, 0 doubled, 0 wrong`, exit code 0; else what is wrong,
     how to replay it, and exit code 1. All state is in a temporary folder, removed when all was well, else named.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.soak import faults
from tests.soak.hostile.plan import ROUNDS
from tests.soak.hostile.world import HostileWorld
from tests.soak.modes import plan as modes_plan
from tests.soak.modes.hostile import ROUNDS as MIXED_ROUNDS
from tests.soak.modes.hostile import MixedWorld
from tests.soak.modes.world import ModesWorld
from tests.soak.plan import Fault, plan
from tests.soak.shards import faults as shards_faults
from tests.soak.shards import plan as shards_plan
from tests.soak.shards.world import ShardWorld
from tests.soak.witness import Wrong
from tests.soak.world import ROOT, SilverDiffers, World


class Soak:
    """A run: done counts faults, wrong what isn't lost nor doubled."""

    def __init__(self, arguments: argparse.Namespace, folder: Path) -> None:
        self.arguments, self.folder = arguments, folder
        self.done = self.wrong = self.transactions = self.lost = self.doubled = 0
        self.began = time.monotonic()

    def run(self) -> None:
        """Raises Wrong."""
        given = self.arguments
        flavours = sorted(("mariadb", "mysql9"), key=lambda one: one != given.flavour) * given.sources
        world: World | ShardWorld
        if given.hostile:
            return self._hostile()
        if given.modes:
            world = ModesWorld(self.folder, given.seed, given.flavour, disturbs_apply=given.disturb_applies)
            faults_of = plan(given.seed, given.faults, modes_plan.KINDS)
        elif given.sources == 1:
            world = World(self.folder, given.seed, given.flavour, disturbs_apply=given.disturb_applies)
            faults_of = plan(given.seed, given.faults)
        else:
            world = ShardWorld(self.folder, given.seed, flavours[: given.sources])
            faults_of = shards_plan.plan(given.seed, given.faults, sorted(world.servers))
        try:
            with world:
                for fault in faults_of:
                    self._one(world, fault)
                if self.done % given.apply_every or not self.done:
                    self._settle(world, compare=True)
        finally:
            self.transactions, self.lost, self.doubled = world.totals()

    def _hostile(self) -> None:
        """Rounds in place of faults."""
        given = self.arguments
        kind, rounds = (MixedWorld, MIXED_ROUNDS) if given.modes else (HostileWorld, ROUNDS)
        with kind(self.folder, given.seed, given.flavour) as world:
            for fault in plan(given.seed, given.faults, rounds):
                seconds = time.monotonic() - self.began
                print(f"{seconds:.0f} s: {fault}, {world.people.accepted} statements", file=sys.stderr, flush=True)
                world.round(fault)
                self.done += 1
                self.transactions = world.people.accepted
                if self.done % given.apply_every == 0:
                    world.settle()
                    print(f"{time.monotonic() - self.began:.0f} s: {world.compare()}", file=sys.stderr, flush=True)
            if self.done % given.apply_every or not self.done:
                world.settle()
                print(f"{time.monotonic() - self.began:.0f} s: {world.compare()}", file=sys.stderr, flush=True)

    def _one(self, world: World | ShardWorld, fault: Fault) -> None:
        given = self.arguments
        with (self.folder / "faults.log").open("a") as log:
            log.write(f"{time.monotonic() - self.began:8.2f} {fault}\n")
        world.tend()
        if isinstance(world, World):
            faults.run(world, fault)
        else:
            shards_faults.run(world, fault)
        world.check()
        self.done += 1
        if self.done % given.apply_every == 0:
            self._settle(world, compare=True)
        elif self.done % given.settle_every == 0:
            self._settle(world, compare=False)

    def _settle(self, world: World | ShardWorld, *, compare: bool) -> None:
        world.settle()
        compared = f", {world.compare()}" if compare else ""
        world.resume()
        seconds = time.monotonic() - self.began
        print(
            f"{seconds:.0f} s: {self.done} faults, {world.totals()[0]} transactions, "
            f"capture started {world.captures} times, apply {world.applies.started}{compared}",
            file=sys.stderr,
            flush=True,
        )

    def line(self) -> str:
        return (
            f"soak: {self.done} faults, {self.transactions} transactions, {self.lost} lost, {self.doubled} doubled, "
            f"{self.wrong} wrong"
        )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--flavour", choices=("mariadb", "mysql9"), default="mariadb")
    parser.add_argument("--sources", type=int, default=1, choices=range(1, 9), help="servers")
    parser.add_argument("--hostile", action="store_true", help="rounds of composed DDL, settings and kills (hostile/)")
    parser.add_argument("--modes", action="store_true", help="a table of each kind in every mode of silver (modes/)")
    parser.add_argument("--settle-every", type=int, default=25, help="faults between comparisons of bronze")
    parser.add_argument("--apply-every", type=int, help="faults between comparisons of silver; 100, of servers 25")
    parser.add_argument("--only-compare", dest="disturb_applies", action="store_false", help="no apply but to compare")
    parser.add_argument(
        "--readers", action="store_true", help="read the lake by all readers in the end (tests/readers)"
    )
    parser.add_argument("--keep", action="store_true", help="keep the folder when all was well, too")
    given = parser.parse_args()
    if given.modes and given.sources > 1:
        parser.error("a soak of all modes has one source")
    if given.hostile and given.sources > 1:
        parser.error("a hostile run has one source: without HOSTILE=1 a run of several has other writers and restores")
    given.apply_every = given.apply_every or (100 if given.sources == 1 else 25)
    return given


def main() -> int:
    """Exit code 0, 1 (something is wrong) or 130 (interrupted)."""
    given = _arguments()
    os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".tidegate" / "numba"))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = Path(tempfile.mkdtemp(prefix="tidegate-soak-"))
    print(f"seed {given.seed}, {given.flavour}, in {folder}", file=sys.stderr, flush=True)
    soak = Soak(given, folder)
    try:
        soak.run()
    except KeyboardInterrupt:
        print(f"interrupted after {soak.done} faults; state in {folder}", file=sys.stderr)
        return 130
    except Wrong as error:
        soak.wrong += error.tables if isinstance(error, SilverDiffers) else int(not soak.lost and not soak.doubled)
        print(f"{type(error).__name__}: {error}")
        print(f"after {soak.done} faults, see faults.log and the other logs in {folder}")
        same = f"FAULTS={given.faults} SEED={given.seed} FLAVOUR={given.flavour} SOURCES={given.sources}"
        print(f"again: make soak {same}{' HOSTILE=1' if given.hostile else ''}{' MODES=1' if given.modes else ''}")
        print(soak.line())
        return 1
    code = int(given.readers and _read(folder) > 0)
    if code:
        print(f"state in {folder}")
    elif not given.keep:
        shutil.rmtree(folder)
    print(soak.line())
    return code


def _read(folder: Path) -> int:
    """How many tables some reader reads otherwise than the others."""
    from tests.kit.spark import session
    from tests.readers.lake import check, report

    with session() as spark:
        return report(check(folder / "lake", spark, copy=folder / "copy"))


if __name__ == "__main__":
    sys.exit(main())
