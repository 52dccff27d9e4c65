"""The effects of foreign keys, as rows of changelogs: each at its place among the logged changes.

In:  effects in their order, where the changes that brought them about stand in the log.
Out: MadeByKeys: rows for each table with a changelog; or why its changelog lacks them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from spark_jobs.cascades.logged import LoggedChanges, Store
from spark_jobs.cascades.made import images_made
from spark_jobs.window.made import MadeByKeys
from tidegate.cascades.follow import Effect, Order
from tidegate.cascades.values import Doubt
from tidegate.changelog.changelog_table import FINER_BITS
from tidegate.changelog.rows import made_changes
from tidegate.schema.model.columns import TableVersion

Name = tuple[str, str]
_READ_MEANWHILE = "foreign keys changed rows of it while a snapshot read it: as they were then isn't known"


@dataclass(frozen=True, slots=True)
class Teller:
    """keeps: tables that have a changelog -> logical name. unsure: read_meanwhile() of each.
    positions: of logged changes.
    """

    keeps: Mapping[Name, str]
    unsure: Mapping[Name, int]
    positions: Mapping[Order, int]

    def tell(
        self,
        effects: Sequence[Effect],
        version_at: Callable[[Name, int], TableVersion],
        read: tuple[str, LoggedChanges, Store],
        made: MadeByKeys,
    ) -> None:
        """read: a source, its logged changes, and whole rows. If a changelog can't have these rows,
        it says so, and its table goes on.
        """
        source, logged, store = read
        numbered: dict[Name, list[tuple[int, Effect]]] = {}
        for order, of in groupby(effects, key=lambda effect: effect.order):
            for number, effect in enumerate(of, 1):
                if effect.table in self.keeps:
                    numbered.setdefault(effect.table, []).append(((order[2] << FINER_BITS) + number, effect))
        for table, own_effects in numbered.items():
            name = self.keeps[table]
            if any(effect.order[0] <= self.unsure.get(table, -1) for _, effect in own_effects):
                made.lacking[name] = _READ_MEANWHILE
                continue
            try:
                for images in images_made(own_effects, version_at, store):
                    places = [
                        (logged.files[seq], self.positions[effect.order], logged.gtids.get(commit_ts))
                        for effect in images.effects
                        for commit_ts, seq, _ in [effect.order]
                    ]
                    changes = made_changes(images.version, images.batch, source, places)
                    made.told.setdefault(name, []).append(changes)
            except Doubt as doubt:
                made.told.pop(name, None)
                made.lacking[name] = f"rows that foreign keys changed can't be told: {doubt.why}"
