"""Carry out a person's form, by the same functions that the commands call.

In:  a Desk, the fields of a form.
Out: the function's effect; its line. UsageError for a form that the page didn't make.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final, Self

from tidegate.errors import HoldChangedError, UsageError
from tidegate.tables.actions_table import Act

if TYPE_CHECKING:
    from tidegate.actions.desk import Desk
    from tidegate.standing.standing import Place

_ID: Final = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class SentForm:
    """name: the logical table. seen: when the hold that was seen was recorded; None of a table that
    wasn't held.

    shown: the digest of what the question was about besides. nothing, changes: a judgement;
    changes: database.table at the source. renamed (OLD=NEW), dropped: columns.
    """

    name: str
    act: Act
    id: str
    seen: datetime | None
    shown: str = ""
    nothing: bool = False
    changes: Sequence[str] = ()
    renamed: Sequence[str] = ()
    dropped: Sequence[str] = ()

    @classmethod
    def of(cls, fields: Mapping[str, Sequence[str]]) -> Self:
        """Raises UsageError."""
        keys = ("name", "action", "id", "seen", "shown")
        name, act, token, seen, shown = (([*fields.get(key, ()), ""])[0] for key in keys)
        if not name or act not in list(Act) or not _ID.fullmatch(token):
            raise UsageError("this isn't a form of the page", remedy="open the table's page again")
        try:
            seen_at = datetime.fromisoformat(seen) if seen else None
        except ValueError:
            raise UsageError("this isn't a time of the page", remedy="open the table's page again") from None
        renamed, dropped = (_lines(fields.get(key, ())) for key in ("renamed", "dropped"))
        nothing = fields.get("word") == ["nothing"]
        return cls(name, Act(act), token, seen_at, shown, nothing, fields.get("changes", ()), renamed, dropped)


def _lines(texts: Sequence[str]) -> list[str]:
    return [line.strip() for text in texts for line in text.splitlines() if line.strip()]


def perform(desk: Desk, form: SentForm) -> str:
    """Carry out the form. Returns the line to show. Raises the errors of the action's function."""
    from tidegate.actions import holds, snapshot_words
    from tidegate.mysql.start.refresh import ColumnAnswers

    match form.act:
        case Act.RELEASE | Act.APPROVE:
            return holds.release(desk, form.name, form.seen)
        case Act.REFRESH:
            answers = ColumnAnswers.of(form.renamed, form.dropped, desk.name)
            return holds.refresh(desk, form.name, answers, form.seen)
        case Act.JUDGE:
            return _judge(desk, form)
        case Act.SNAPSHOT:
            holds.held_table(desk, form.name, form.seen)
            return snapshot_words.start(desk, snapshot_words.work_of(desk, lambda _: None), [form.name], exact=True)
        case Act.PAUSE | Act.RESUME | Act.CANCEL:
            _check_shown(desk, form, snapshot_words.going_on(desk, form.name), "another snapshot of it is under way")
            return snapshot_words.tell(desk, form.act, [form.name], exact=True)
        case _:
            raise UsageError(f"the page has no button for {form.act}", where=desk.name, remedy="see `tidegate --help`")


def _judge(desk: Desk, form: SentForm) -> str:
    from tidegate.actions import holds

    at = holds.held_table(desk, form.name, form.seen).event
    if form.nothing == bool(form.changes) or at is None:
        raise UsageError("say what it changes", where=desk.name, remedy="choose either nothing, or its tables")
    _check_shown(desk, form, held_with(desk, at), "other tables are held at this place, too")
    return holds.judge(desk, holds.Judgement(at.source, f"{at.file}:{at.pos}", form.changes))


def digest(names: Collection[str]) -> str:
    """A digest of the tables that a question is about: a form can't name 10,000 tables."""
    return hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()


def _check_shown(desk: Desk, form: SentForm, names: Collection[str], what: str) -> None:
    if digest(names) != form.shown:
        raise HoldChangedError(
            f"{form.name}: {what} now, or none any more", where=desk.name, remedy="open the table's page again"
        )


def held_with(desk: Desk, place: Place) -> list[str]:
    """The tables at the source, database.table, that are held at a place for a person to judge."""
    from tidegate.actions.holds import held_at

    here = held_at(desk, place.source, f"{place.file}:{place.pos}")
    return sorted({f"{at.database}.{at.table}" for at, _ in here})
