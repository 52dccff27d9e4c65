"""Silver against control: what goes on, what catches up, and what must never be completed in silence."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.standing.silver import GOES_ON, NO_SILVER, Answer, Repacked, Said, Shown, Unlike, answer, told

OURS = Said(12, "id", 100)
FITS = Shown(12, "id", 100, 100)
LOSSY = Repacked(13, "OPTIMIZE", "theirs", 10, 9)
UNKNOWN = LOSSY._replace(after=None)


@pytest.mark.parametrize(
    ("said", "shown", "wanted"),
    [
        (OURS, FITS, GOES_ON),
        (OURS, replace(FITS, version=15), GOES_ON),  # OPTIMIZE, or a person's DELETE
        (OURS, replace(FITS, version=13, own_ts=110, applied_ts=110), GOES_ON),  # a window that was killed
        (OURS, Shown(), Answer(Unlike.GONE)),
        (OURS, replace(FITS, version=11), Answer(Unlike.OLDER, 100)),  # its newest commit file was removed
        (OURS, replace(FITS, version=14, own_ts=90, applied_ts=90), Answer(Unlike.OLDER, 90)),  # and written since
        (OURS, replace(FITS, own_ts=0, applied_ts=0), Answer(Unlike.OLDER)),
        (OURS, replace(FITS, version=13, restored=True), Answer(Unlike.RESTORED)),
        (OURS, replace(FITS, version=11, restored=True), Answer(Unlike.RESTORED)),
        (OURS, replace(FITS, version=40, cleaned=True), Answer(Unlike.CLEANED)),
        (OURS, replace(FITS, version=13, rewrite=LOSSY), Answer(Unlike.UNEVEN, rewrite=LOSSY)),
        (OURS, replace(FITS, version=13, rewrite=UNKNOWN), GOES_ON),
        (OURS, replace(FITS, version=13, rewrite=LOSSY._replace(after=10)), GOES_ON),
        (OURS, replace(FITS, table_id="else", born=True, cleaned=True), Answer(Unlike.REPLACED)),
        (OURS, replace(FITS, table_id="else", applied_ts=80, born=True), Answer(Unlike.REPLACED, 80)),
        (OURS, replace(FITS, table_id="else"), Answer(Unlike.REPLACED)),  # REPLACE TABLE in our own log
        (OURS, replace(FITS, table_id="else", born=True, restored=True), Answer(Unlike.REPLACED)),
        (OURS, Shown(3, "else", has_rows=True, born=True), Answer(Unlike.FOREIGN)),  # not for a snapshot
        (OURS, Shown(3, "else", born=True), Answer(Unlike.REPLACED)),
        (Said(12), replace(FITS, table_id="any"), GOES_ON),  # an older release recorded no id
        (Said(12), Shown(11, "any", 50, 50), Answer(Unlike.OLDER, 50)),
        (Said(12), Shown(), Answer(Unlike.GONE)),
        (Said(0, "id", 0), Shown(), GOES_ON),  # it never had a row
        (Said(0, "id", 0), Shown(1, "id", has_rows=True), GOES_ON),  # somebody's rows in a table that is ours
        (Said(0, "id", 0), Shown(1, "else", has_rows=True), Answer(Unlike.FOREIGN)),
        (None, Shown(3, "else", has_rows=True), Answer(Unlike.FOREIGN)),
        (Said(), Shown(3, "else", has_rows=True), Answer(Unlike.FOREIGN)),
        (None, Shown(3, "else", own_ts=5, applied_ts=5), GOES_ON),  # a window that was killed made it
        (None, Shown(0, "else"), GOES_ON),
        (None, Shown(), GOES_ON),
    ],
)
def test_answers(said: Said | None, shown: Shown, wanted: Answer) -> None:
    assert answer(said, shown) == wanted


@dataclass(frozen=True)
class Log:
    """A table's log: (kind, commit_ts) per version; a copy of it goes on by itself."""

    table_id: str
    commits: tuple[tuple[str, int], ...]

    def shown(self, said: Said | None) -> Shown:
        """As as_published.py shows it: what stands behind our newest commit, or behind the version that is known."""
        own = [at for kind, at in self.commits if kind == "ours"]
        newest = max(own, default=0)
        first = Shown(len(self.commits) - 1, self.table_id, newest, newest, has_rows=True)
        same = said is not None and said.table_id == self.table_id and first.version >= said.version
        known = said.version if said is not None and same and newest >= said.own_ts else NO_SILVER
        tail = list(itertools.takewhile(lambda one: one[0] != "ours", reversed(self.commits[known + 1 :])))
        return replace(first, restored=any(kind == "restore" for kind, _ in tail), born=True)


@st.composite
def logs(draw: st.DrawFn) -> Log:
    kinds = draw(st.lists(st.sampled_from(["ours", "optimize", "delete"]), min_size=1, max_size=12))
    return Log("id", tuple((kind, 10 * at) for at, kind in enumerate(("ours", *kinds), 1)))


def others() -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(["optimize", "delete"]), max_size=4)


@given(logs(), others())
def test_what_others_may_do_is_legal(log: Log, more: list[str]) -> None:
    said = log.shown(None).said
    longer = replace(log, commits=(*log.commits, *((kind, 0) for kind in more)))
    assert answer(said, longer.shown(said)) == GOES_ON


@given(logs(), st.integers(0, 11), others())
def test_an_older_copy_never_passes_and_never_counts_more_than_it_has(log: Log, kept: int, more: list[str]) -> None:
    """Whatever was done to the copy since, as long as ours were cut off."""
    said = log.shown(None).said
    copy = replace(log, commits=log.commits[: kept + 1])
    lost = any(kind == "ours" for kind, _ in log.commits[kept + 1 :])
    copy = replace(copy, commits=(*copy.commits, *((kind, 0) for kind in more)))
    found = answer(said, copy.shown(said))
    assert (found.unlike is Unlike.OLDER) == (lost or len(copy.commits) < len(log.commits))
    if found.unlike is not None:
        assert found.applied_ts == max((at for kind, at in copy.commits if kind == "ours"), default=0)


@given(logs(), others(), others(), st.booleans())
def test_restore_is_seen_until_a_commit_of_ours_follows(
    log: Log, before: list[str], after: list[str], ours: bool
) -> None:
    said = log.shown(None).said
    tail = [*((kind, 0) for kind in before), ("restore", 0), *((kind, 0) for kind in after)]
    restored = replace(log, commits=(*log.commits, *tail))
    assert answer(said, restored.shown(said)).unlike is Unlike.RESTORED
    known = restored.shown(said).said  # once it is held, control says so
    assert answer(known, restored.shown(known)) == GOES_ON
    if ours:  # what emptied it at the source
        assert answer(said, replace(restored, commits=(*restored.commits, ("ours", 999))).shown(said)) == GOES_ON


def _all() -> Iterator[tuple[Said | None, Shown]]:
    saids: list[Said | None] = [None]
    saids += [Said(*of) for of in itertools.product((NO_SILVER, 0, 5), ("", "id"), (0, 50))]
    for said, version, table_id, own, applied in itertools.product(
        saids, (NO_SILVER, 4, 5, 6), ("id", "else"), (0, 40, 50, 60), (0, 40)
    ):
        flags = itertools.product((False, True), repeat=4)
        for (rows, restored, cleaned, born), rewrite in itertools.product(flags, (None, LOSSY, UNKNOWN)):
            shown = Shown(version, table_id, own, min(own, applied), rows, restored, cleaned, born, rewrite)
            yield said, Shown() if version == NO_SILVER else shown


def test_every_answer_is_of_these_and_proves_no_more_than_silver_says() -> None:
    seen = set()
    for said, shown in _all():
        found = answer(said, shown)
        seen.add(found.unlike)
        assert found.applied_ts in (0, shown.applied_ts)
        unproven = (Unlike.RESTORED, Unlike.CLEANED, Unlike.FOREIGN, Unlike.GONE, Unlike.UNEVEN)
        assert not (found.unlike in unproven and found.applied_ts)
        if found.unlike is not None:
            assert told("d.t", found, said).startswith("d.t: ")
        if found.unlike is None and said is not None and not said.never_filled:
            assert shown.own_ts >= said.own_ts
            assert shown.version >= said.version
            assert not shown.restored
            assert not shown.cleaned
            assert shown.rewrite != LOSSY
    assert seen == {None, *Unlike}
