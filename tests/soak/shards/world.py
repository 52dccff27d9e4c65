"""Several servers whose shards are one table: a capture each, one apply, one reader of snapshots, a witness each.

The first two have a replica that takes over.

In:  a folder, a seed, the first one's flavour, how many.
Out: ShardWorld, a context manager, as tests/soak/world.py's World; faults.py here breaks parts of it.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tests.soak.applies import Applies
from tests.soak.capturing import Capture
from tests.soak.copies import Copies
from tests.soak.hands import Hands
from tests.soak.peaks import Peaks
from tests.soak.reading import read_again
from tests.soak.shards import compare
from tests.soak.shards.place import Place
from tests.soak.shards.replicas import Replicas
from tests.soak.shards.shop import Shard, Shop
from tests.soak.shots import Shots
from tests.soak.witness import Seen, Wrong
from tests.soak.world import SilverDiffers
from tests.support.nursery import Nursery
from tests.support.whole import Whole
from tidegate import config
from tidegate.lake.cuts.published import known_cuts
from tidegate.lake.files import LakeFiles
from tidegate.lake.standing import held
from tidegate.tables import State

_APPLY_SECONDS: Final = 30
# Small segments; four of them land on one table, on a machine that does everything else, too.
_CAPTURE: Final = "{land_seconds: 2, heartbeat_seconds: 1, segment_bytes: 65536, value_log_reserve_bytes: 0}"
_ROUNDS_MAX: Final = 12
_ROUNDS_ALONE: Final = 5
_REPLICATED: Final = 2  # of either flavour one


class Memory(NamedTuple):
    """What is known of a lake when a backup of it begins. seen: by source; hurt, touched: tables of silver."""

    seen: Mapping[str, Seen]
    hurt: frozenset[str]
    touched: frozenset[str]


class ShardWorld(Whole):
    """places: by source. hurt: tables whose silver somebody lost or put back since all was compared. due: definitions
    that shards haven't got yet. out: sources that the pipeline file doesn't name now.
    """

    def __init__(self, folder: Path, seed: int, flavours: list[str]) -> None:
        super().__init__()
        self.folder, self.seed = folder, seed
        self.pipeline = f"soak_{os.getpid()}"
        self.lake = LakeFiles(str(folder / "lake"))
        names = "abcdefgh"[: len(flavours)]
        self.servers = {
            name: Replicas(one, folder / f"server-{name}", at, replicated=at < _REPLICATED)
            for at, (name, one) in enumerate(zip(names, flavours, strict=True))
        }
        self.out: set[str] = set()
        self.hurt: set[str] = set()
        self.disturbs_apply = True
        self.places: dict[str, Place] = {}
        self.due: list[tuple[str, Shard, str]] = []
        self.peaks = Peaks(self._running)
        self.random = random.Random(f"{seed} world")
        self.definitions = 0
        self._whole_at = 0
        self._writing = threading.Lock()
        self._moments = [0, 0]
        self.file = folder / "soak.yaml"

    def _begin(self) -> None:
        nursery = self.stack.enter_context(Nursery())
        with ThreadPoolExecutor() as pool:
            list(pool.map(self.stack.enter_context, self.servers.values()))
        logins = {f"AIRFLOW_CONN_{name.upper()}": _login(one) for name, one in self.servers.items()}
        self.write_file()
        self.applies = self.stack.enter_context(Applies(self.file, self.folder / "apply.log"))
        self.hands = Hands(Path(self.lake.root), self.applies)
        self.copies = Copies[Memory](self.folder, self.file, logins, self.applies.say)
        self.shots = self.stack.enter_context(Shots(self.file, logins, self.folder / "snapshot.log", compare.ORDERS))
        self.stack.enter_context(self.peaks)
        for at, (name, servers) in enumerate(self.servers.items()):
            capture = self.stack.enter_context(Capture(nursery, self.folder, logins, source=name))
            shop = Shop(servers.primary, at, name, self.seed)
            self.places[name] = Place(self.folder, servers, shop, capture)
        for place in self.places.values():
            place.shop.peers = [other.shop for other in self.places.values() if other is not place]
        self._each(Place.begin)
        self._catch_up()
        self.compare()
        self._whole_at = known_cuts(self.lake)[-1]
        for place in self.places.values():
            self.stack.enter_context(place.shop)
            self.stack.enter_context(place.turns)

    def write_file(self) -> None:
        """Without those that are taken out."""
        entries = ", ".join(
            f"{name}: {{conn_id: {name}, flavour: {one.primary.flavour}, start: now, max_hold_seconds: 60}}"
            for name, one in self.servers.items()
            if name not in self.out
        )
        fresh = self.folder / "soak.yaml.new"
        fresh.write_text(
            f"pipeline: {self.pipeline}\nlake: {{path: {self.lake.root}}}\nsources: {{{entries}}}\n"
            "tables: {include: ['shop_\\d+.orders_\\d+', 'only_\\w+.accounts'],"
            f" routes: [{{match: 'shop_\\d+.orders_\\d+', to: {compare.ORDERS}}}]}}\n"
            f"capture: {_CAPTURE}\n"
            f"apply: {{mode: batch, run_for_seconds: {_APPLY_SECONDS}}}\n"
        )
        fresh.rename(self.file)

    # --- while it goes on ---------------------------------------------------------------------------------

    def tend(self) -> None:
        """An apply runs always; what is to go on now goes on; one shard more gets its definition. Raises Wrong."""
        self.applies.tend()
        if not self.applies.applies():
            self.applies.start(mode="micro_batch")
        self._define(self.random.randint(0, 4))

    def totals(self) -> tuple[int, int, int]:
        """Transactions, and of these lost and doubled."""
        found = [place.witness for place in self.places.values()]
        return sum(one.transactions for one in found), sum(one.lost for one in found), sum(one.doubled for one in found)

    @property
    def captures(self) -> int:
        """How many were started."""
        return sum(place.capture.starts for place in self.places.values())

    def check(self) -> None:
        """Raises Wrong when a part of this has failed where it mustn't."""
        for name, place in self.places.items():
            if place.capture.failure:
                raise Wrong(f"{name}: {place.capture.failure}")
            place.turns.check()

    def resume(self) -> None:
        for place in self.places.values():
            place.shop.resume()

    def take_out(self, source: str) -> bool:
        """The pipeline file doesn't name it any more; False when another one is out already."""
        with self._writing:
            if self.out:
                return False
            self.out.add(source)
            self.write_file()
        return True

    def take_in(self, source: str) -> None:
        with self._writing:
            self.out.discard(source)
            self.write_file()
        self.go_on(source)

    def go_on(self, source: str) -> None:
        """Capture of it, unless nobody asks for that."""
        if source not in self.out:
            self.places[source].capture.go_on()

    def _define(self, most: float) -> None:
        """As many shards as are asked for, of those whose server is up and has no fault now. A shard gets its own in
        their order: the narrower one behind the wider one would be another fault.
        """
        later: set[tuple[str, Shard]] = set()
        for one in list(self.due):
            name, shard, change = one
            place = self.places[name]
            if most <= 0:
                break
            if (name, shard) in later or not place.turns.busy.acquire(blocking=False):
                later.add((name, shard))
                continue
            try:
                if place.is_up:
                    place.shop.alter(shard, change)
                    self.due.remove(one)
                    most -= 1
                else:
                    later.add((name, shard))
            finally:
                place.turns.busy.release()

    # --- silver and the lake ------------------------------------------------------------------------------

    @staticmethod
    def silver_of(table: str) -> str:
        return f"silver/{table.replace('.', '/')}"

    def explain(self, table: str, cause: str) -> None:
        """Of its silver: no fault here gives another cause but people's rows, which hurt no record."""
        assert cause in ("silver", "hands")
        if cause == "silver":
            self.hurt.add(table)

    def remembered(self) -> Memory:
        seen = {name: place.witness.seen() for name, place in self.places.items()}
        return Memory(seen, frozenset(self.hurt), frozenset(self.hands.touched))

    def keep(self, memories: list[Memory]) -> None:
        for name, place in self.places.items():
            place.witness.kept = [memory.seen[name] for memory in memories]

    @contextmanager
    def no_captures(self) -> Iterator[None]:
        """All servers can be reached, and no fault is under way."""
        for place in self.places.values():
            place.turns.settle()
            place.proxy.mend()
        self._each(lambda place: place.capture.end())
        try:
            yield
        finally:
            for place in self.places.values():
                place.capture.go_on()

    def put_back(self, memory: Memory, unlike: frozenset[str]) -> None:
        """Raises Wrong."""
        if strange := unlike - memory.hurt:
            raise Wrong(f"put back, and not as published, although nobody had hurt them: {sorted(strange)}")
        self.lake = self.hands.lake
        for name, place in self.places.items():
            place.witness.put_back(memory.seen[name])
        self.hurt |= memory.hurt
        self.hands.touched |= memory.touched

    def _read_touched(self) -> None:
        """What somebody wrote to; until then no sum of money is right. Raises Wrong."""
        if self.hands.touched:
            read_again(self.hands.touched, self.file, self.shots, self.applies, self._catch_up)
            self.hands.touched.clear()
            self._whole_at = known_cuts(self.lake)[-1]

    def _each(self, what: Callable[[Place], None]) -> None:
        """Of all places at once."""
        with ThreadPoolExecutor(len(self.places)) as pool:
            list(pool.map(what, self.places.values()))

    def _running(self) -> dict[str, int | None]:
        captures = [(name, place.capture.child) for name, place in list(self.places.items())]
        found = {f"capture {name}": child.pid for name, child in captures if child is not None}
        return found | {"apply": next((one.process.pid for one in list(self.applies.applies())), None)}

    # --- settle and compare -------------------------------------------------------------------------------

    def settle(self) -> None:
        """All run, no branch is open, no definition is due, and bronze has all of it once. Raises Wrong."""
        for place in self.places.values():
            place.turns.settle()
        while self.due:
            self._define(float("inf"))
        self.shots.kill()
        self._each(Place.settle)
        self._catch_up()

    def _catch_up(self) -> None:
        """Two rounds: each source's last word is later than all rows of the others."""
        for _ in range(2):
            time.sleep(1.1)  # MariaDB tells whole seconds
            self._each(Place.catch_up)

    def compare(self) -> str:
        """Apply to the end, read what waits, and compare; in words what was compared. Raises Wrong."""
        self.applies.to_the_end()
        self._read_touched()
        for at in range(_ROUNDS_MAX):
            self.applies.to_the_end()
            states = held.last_states(self.lake)
            waits = {name: one for name, one in states.items() if one.state.waits or one.state is State.SNAPSHOT}
            if not waits and not self.shots.reads:
                break
            held_ones = {name: one for name, one in waits.items() if one.state is State.HELD and not one.lacks_rows}
            if held_ones:
                told = "; ".join(f"{name}: {one.cause}: {one.reason}" for name, one in held_ones.items())
                raise SilverDiffers(f"held for nothing: {told}", len(held_ones))
            lacking = [name for name, one in waits.items() if one.state is State.SNAPSHOT or one.lacks_rows]
            if never := compare.unasked(self.lake, config.load(self.file), lacking):
                raise SilverDiffers(f"lack rows, and nobody will ask for them: {never}", len(never))
            # What was left out or lost often is put off by itself: a person needn't wait for that, and asks for it.
            self.shots.begin(*lacking, asks=at >= _ROUNDS_ALONE)
            self.shots.wait()
            self._catch_up()
        else:
            told = "; ".join(f"{name}: {one.reason}" for name, one in waits.items())
            raise SilverDiffers(f"still waits: {told}; see snapshot.log", len(waits))
        self._catch_up()  # the reader's marks have moved some log's end
        self.applies.to_the_end()
        shops = [place.shop for place in self.places.values()]
        rows = compare.equal(self.lake, self.pipeline, shops)
        if open_yet := compare.unanswered(self.lake):
            raise SilverDiffers(f"branches that were answered are open: {open_yet}", len(open_yet))
        found = compare.money(self.lake, self.pipeline, shops, self._whole_at, self.random)
        self._moments = [sum(pair) for pair in zip(self._moments, found, strict=True)]
        self.hurt.clear()
        failovers = sum(place.failovers for place in self.places.values())
        told = sum(place.told for place in self.places.values())
        answered = sum(shop.answered for shop in shops)
        shards = sum(len(shop.shards) for shop in shops)
        return (
            f"{rows} rows of {shards} shards equal in silver, {answered} branches answered, {failovers} failovers,"
            f" {told} acknowledged are there, sums right at {self._moments[0]} of {self._moments[1]} cuts, {self.peaks}"
        )


def _login(servers: Replicas) -> str:
    """With all hosts of a source, through the network that has faults."""
    first, *others = servers.proxies.values()
    told = {"conn_type": "mysql", "host": first.host, "port": first.port, "login": servers.primary.user}
    told |= {"password": servers.primary.password}
    return json.dumps(told | ({"extra": {"hosts": [f"{one.host}:{one.port}" for one in others]}} if others else {}))
