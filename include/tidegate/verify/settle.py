"""Decide which suspicious keys really differ: one round, which reads just these keys on both sides.

In:  rows of the source at a moment m, rows of silver at a cut C, which keys the log changes in (L, C].
Out: per key a verdict: equal, different, or not settled, to be read again.

It must hold in a round: every transaction at or below L was visible to the source's read, and every one that was
visible to it is at or below C. Then m lies between L and C in the order of the log, and for a key k:

- Silver has what the source had: EQUAL. If the log doesn't change k in (L, C], the source has it at C as well. If it
  does, that change wrote the whole row, and a fault from before L is gone. No fault from at or below L is therefore
  left in k. `verified through L` says that, and no more; later changes are the next verification's.
- They differ, and the log doesn't change k in (L, C]: the source had the same at C as at m, and silver at C has
  another: DIFFERENT. Which keys the log changes is read by the mover's own decoding. If that decoding is wrong, so is
  silver: a key is called different only when the mover contradicts the source, or itself.
- They differ, and the log does change k: nothing follows. It is read again; a key that is changed between each two
  reads stays unsettled, and the report says so.

In a table without a key, the hash of a row stands for its key, and the number of such rows is compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate.verify.columns.forms import KeyText

Key = tuple[KeyText, ...]
Row = tuple[Any, ...]
Rows = Mapping[Key, Counter[Row]]  # a key that isn't in it has no rows


@dataclass(frozen=True, slots=True)
class Settled:
    """different: (key, row of the source or None, row of silver or None); a key may have several."""

    equal: tuple[Key, ...] = ()
    different: tuple[tuple[Key, Row | None, Row | None], ...] = ()
    left: tuple[Key, ...] = ()


@dataclass(slots=True)
class _Found:
    equal: list[Key] = field(default_factory=list)
    different: list[tuple[Key, Row | None, Row | None]] = field(default_factory=list)
    left: list[Key] = field(default_factory=list)


def settle(keys: Iterable[Key], source: Rows, silver: Rows, changed: Collection[Key] | None) -> Settled:
    """One round. changed: keys that the log changes in (L, C]; None when nobody knows, so any may
    be.
    """
    sorted_keys, none = _Found(), Counter[Row]()
    for key in keys:
        ours, theirs = source.get(key, none), silver.get(key, none)
        if ours == theirs:
            sorted_keys.equal.append(key)
        elif changed is None or key in changed:
            sorted_keys.left.append(key)
        else:
            sorted_keys.different += _pairs(key, ours, theirs)
    return Settled(tuple(sorted_keys.equal), tuple(sorted_keys.different), tuple(sorted_keys.left))


def _pairs(key: Key, ours: Counter[Row], theirs: Counter[Row]) -> list[tuple[Key, Row | None, Row | None]]:
    """The rows that one side has and the other hasn't, side by side as far as it goes."""
    missing, extra = list((ours - theirs).elements()), list((theirs - ours).elements())
    count = max(len(missing), len(extra))
    left: list[Row | None] = [*missing, *[None] * (count - len(missing))]
    right: list[Row | None] = [*extra, *[None] * (count - len(extra))]
    return [(key, row, other) for row, other in zip(left, right, strict=True)]
