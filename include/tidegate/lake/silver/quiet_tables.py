"""The silver tables nobody has written to since they were published, by listings of the folder
above them.

In:  the store of that folder; the tables as control/cuts has them.
Out: the paths of these quiet tables, on the same evidence as as_published.is_quiet.

A page of a listing has a thousand names, and a quiet table a few, so one request answers for dozens
of tables. The next page begins at the next table's published commit: older commits and a large
table's data files are skipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate.delta.object_names import LOG, commit_name, commit_version
from tidegate.delta.stores.store import Entry, LogStore
from tidegate.lake.silver.as_published import is_newest
from tidegate.limits import STORE_PAGE_FILES
from tidegate.standing.silver import Said


@dataclass(slots=True)
class _Asked:
    """A table. folder: its log's, with a slash at the end. commits: the published one, and those
    after it.
    """

    path: str
    folder: str
    said: Said
    commits: list[Entry] = field(default_factory=list)

    @property
    def begin(self) -> str:
        """The published commit's name without its last character: a listing after it includes the
        commit.
        """
        return (self.folder + commit_name(self.said.version))[:-1]

    def is_behind(self, name: str) -> bool:
        """Whether everything in this table's log sorts before a name."""
        return name > self.folder and not name.startswith(self.folder)

    def take(self, entry: Entry) -> None:
        name = entry.name.removeprefix(self.folder)
        version = commit_version(name) if name != entry.name else None
        if version is not None and version >= self.said.version:
            self.commits.append(entry._replace(name=name))


def quiet_tables(store: LogStore, said: Mapping[str, Said]) -> set[str]:
    """The paths of the tables nobody has written to since they were published.

    said: by path in the store's folder. The result is empty if the store lists in another order, or
    can't list from a given name on.

    Raises LakeUnavailable, LakeRefused.
    """
    asked = sorted((_Asked(path, f"{path}/{LOG}/", each) for path, each in said.items()), key=lambda each: each.folder)
    at, behind = 0, ""
    while at < len(asked):
        page = store.below(max(behind, asked[at].begin))
        if page is None:
            return set()
        for entry in page:
            if entry.name <= behind:
                return set()
            behind = entry.name
            while at < len(asked) and asked[at].is_behind(behind):
                at += 1
            if at < len(asked):
                asked[at].take(entry)
        if len(page) < STORE_PAGE_FILES:
            break
        if at < len(asked) and len(asked[at].commits) > 1:  # it isn't quiet: further commits don't matter
            at += 1
    return {each.path for each in asked if is_newest(each.commits, each.said)}
