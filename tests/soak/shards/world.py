"""Several servers whose shards are one table: a capture each, one apply, one reader of snapshots, a witness each.

In:  a folder, a seed, the first one's flavour, how many.
Out: ShardWorld, a context manager, as tests/soak/world.py's World; faults.py here breaks parts of it.
"""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self

from tests.soak.applies import Applies
from tests.soak.peaks import Peaks
from tests.soak.shards import compare
from tests.soak.shards.shop import MONEY, OPTIONS, Shard, Shop
from tests.soak.shots import Shots
from tests.soak.witness import Witness, Wrong
from tests.soak.world import Capture, SilverDiffers, catch_up, until
from tests.support.nursery import Nursery
from tests.support.own_server import own_server
from tidegate.lake import held
from tidegate.lake.cuts import known_cuts
from tidegate.lake.files import LakeFiles
from tidegate.tables import WATERMARK_DATABASE, State

_APPLY_SECONDS: Final = 30
# Small segments; four of them land on one table, on a machine that does everything else, too.
_CAPTURE: Final = "{land_seconds: 2, heartbeat_seconds: 1, segment_bytes: 65536, value_log_reserve_bytes: 0}"
_ROUNDS_MAX: Final = 12


class Place:
    """A source: its shop at work, who captures it, who witnesses it."""

    def __init__(self, shop: Shop, capture: Capture, witness: Witness) -> None:
        self.shop, self.capture, self.witness = shop, capture, witness

    @property
    def is_up(self) -> bool:
        return self.shop.server.process is not None

    def begin(self) -> None:
        """Make its tables, once capture is there: nothing is from before."""
        witness = self.witness
        until(self.capture, witness, lambda: witness.look()[1] > 0, f"{self.shop.source}: capture doesn't begin")
        self.shop.create()

    def catch_up(self) -> None:
        catch_up(self.shop.server, self.capture, self.witness)


class ShardWorld:
    """places: by source. due: definitions that shards haven't got yet. later: when -> what goes on then."""

    def __init__(self, folder: Path, seed: int, flavours: list[str]) -> None:
        self.folder, self.seed = folder, seed
        self.pipeline = f"soak_{os.getpid()}"
        self.lake = LakeFiles(str(folder / "lake"))
        names = "abcdefgh"[: len(flavours)]
        self.servers = {
            name: own_server(one, folder / f"server-{name}", options=(*OPTIONS, f"--server-id={101 + at}"))
            for at, (name, one) in enumerate(zip(names, flavours, strict=True))
        }
        self.disturbs_apply = True
        self.places: dict[str, Place] = {}
        self.due: list[tuple[str, Shard, str]] = []
        self.later: list[tuple[float, Callable[[], object]]] = []
        self.peaks = Peaks(self._running)
        self.random = random.Random(f"{seed} world")
        self.definitions = 0
        self._whole_at = 0
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.__exit__(*error)

    def _start(self) -> None:
        nursery = self._stack.enter_context(Nursery())
        logins: dict[str, str] = {}
        for name, server in self.servers.items():
            self._stack.enter_context(server)
            server.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{server.user}'@'%'")
            if server.flavour == "mysql":
                server.query(f"GRANT XA_RECOVER_ADMIN ON *.* TO '{server.user}'@'%'")
            logins[f"AIRFLOW_CONN_{name.upper()}"] = (
                f"mysql://{server.user}:{server.password}@{server.host}:{server.port}"
            )
        entries = ", ".join(
            f"{name}: {{conn_id: {name}, flavour: {server.flavour}, start: now, max_hold_seconds: 60}}"
            for name, server in self.servers.items()
        )
        file = self.folder / "soak.yaml"
        file.write_text(
            f"pipeline: {self.pipeline}\nlake: {{path: {self.lake.root}}}\nsources: {{{entries}}}\n"
            "tables: {include: ['shop_\\d+.orders_\\d+', 'only_\\w+.accounts'],"
            f" routes: [{{match: 'shop_\\d+.orders_\\d+', to: {compare.ORDERS}}}]}}\n"
            f"capture: {_CAPTURE}\n"
            f"apply: {{mode: batch, run_for_seconds: {_APPLY_SECONDS}}}\n"
        )
        self.applies = self._stack.enter_context(Applies(file, self.folder / "apply.log"))
        self.shots = self._stack.enter_context(Shots(file, logins, self.folder / "snapshot.log", compare.ORDERS))
        self._stack.enter_context(self.peaks)
        for at, (name, server) in enumerate(self.servers.items()):
            capture = self._stack.enter_context(Capture(nursery, self.folder, logins, source=name))
            witness = Witness(self.folder / "lake", server, name)
            self.places[name] = Place(Shop(server, at, name, self.seed), capture, witness)
        for place in self.places.values():
            place.shop.peers = [other.shop for other in self.places.values() if other is not place]
            place.begin()
        self._catch_up()
        self.compare()
        self._whole_at = known_cuts(self.lake)[-1]
        for place in self.places.values():
            self._stack.enter_context(place.shop)

    # --- while it goes on ---------------------------------------------------------------------------------

    def tend(self) -> None:
        """An apply runs always; what is to go on now goes on; one shard more gets its definition. Raises Wrong."""
        self.applies.tend()
        if not self.applies.applies():
            self.applies.start(mode="micro_batch")
        self._go_on(time.monotonic())
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

    def resume(self) -> None:
        for place in self.places.values():
            place.shop.resume()

    def _go_on(self, now: float) -> None:
        ready = [what for at, what in self.later if at <= now]
        self.later = [(at, what) for at, what in self.later if at > now]
        for what in ready:
            what()

    def _define(self, count: float) -> None:
        """As many shards as are asked for, of those whose server is up."""
        for one in [one for one in self.due if self.places[one[0]].is_up]:
            if count <= 0:
                break
            self.places[one[0]].shop.alter(*one[1:])
            self.due.remove(one)
            count -= 1

    def _running(self) -> dict[str, int | None]:
        captures = [(name, place.capture.child) for name, place in list(self.places.items())]
        found = {f"capture {name}": child.pid for name, child in captures if child is not None}
        return found | {"apply": next((one.process.pid for one in list(self.applies.applies())), None)}

    # --- settle and compare -------------------------------------------------------------------------------

    def settle(self) -> None:
        """All run, no branch is open, no definition is due, and bronze has all of it once. Raises Wrong."""
        self._go_on(float("inf"))
        self._define(float("inf"))
        for place in self.places.values():
            (place.capture.gate / "arm").unlink(missing_ok=True)
            place.shop.pause()
        self.shots.kill()
        for place in self.places.values():
            place.shop.answer_all()
            place.catch_up()
            place.witness.settle()
            if (found := place.shop.money()) != MONEY:
                raise Wrong(f"{place.shop.source} itself has {found} of {MONEY}")
        self._catch_up()

    def _catch_up(self) -> None:
        """Two rounds: each source's last word is later than all rows of the others."""
        for _ in range(2):
            time.sleep(1.1)  # MariaDB tells whole seconds
            for place in self.places.values():
                place.catch_up()

    def compare(self) -> str:
        """Apply to the end, read what waits, and compare; in words what was compared. Raises Wrong."""
        for _ in range(_ROUNDS_MAX):
            self.applies.to_the_end()
            states = held.last_states(self.lake)
            waits = {name: one for name, one in states.items() if one.state.waits or one.state is State.SNAPSHOT}
            if not waits and not self.shots.reads:
                break
            held_ones = {name: one for name, one in waits.items() if one.state is State.HELD and not one.lacks_rows}
            if held_ones:
                told = "; ".join(f"{name}: {one.error}: {one.reason}" for name, one in held_ones.items())
                raise SilverDiffers(f"held for nothing: {told}", len(held_ones))
            self.shots.begin(asks=False)
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
        read, chosen = compare.money(self.lake, self.pipeline, shops, self._whole_at, self.random)
        answered = sum(shop.answered for shop in shops)
        shards = sum(len(shop.shards) for shop in shops)
        return (
            f"{rows} rows of {shards} shards equal in silver, {answered} branches answered, sums right at {read} of"
            f" {chosen} cuts, {self.peaks}"
        )
