"""People's actions in control/actions: who did what to which tables, and the result.

In:  a lake; a PersonAction by its Author.
Out: a row before the action, and a row with its result; the actions so far.

Without its first row an action isn't done. Its id makes it happen once: a button pressed twice
sends the same id, and the second request finds the row of the first, in whichever process.
"""

from __future__ import annotations

import getpass
import logging
import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Self

from tidegate.errors import AlreadyDone, ConfigError, TidegateError, UsageError
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.limits import ACTION_DETAIL_CHARACTERS_MAX, ACTION_USER_CHARACTERS_MAX
from tidegate.tables.actions_table import ACTIONS, Act, ActionOutcome

log = logging.getLogger(__name__)

COMMAND_LINE: Final = "command line"


@dataclass(frozen=True, slots=True)
class Author:
    """A person, and where the name comes from. The name is always one short line."""

    user: str
    place: str = COMMAND_LINE

    def __post_init__(self) -> None:
        line = " ".join("".join(map(_printable, self.user)).split())
        object.__setattr__(self, "user", line[:ACTION_USER_CHARACTERS_MAX] or "an unknown user")

    @classmethod
    def of_process(cls) -> Self:
        """The user of the operating system; a number for one without a name, as containers have."""
        try:
            return cls(getpass.getuser())
        except (KeyError, OSError):
            return cls(f"uid {os.getuid()}")

    @property
    def words(self) -> str:
        """The end of a sentence about the action."""
        return f"by {self.user}" if self.place == COMMAND_LINE else f"in {self.place} by {self.user}"


def _printable(character: str) -> str:
    return character if character.isprintable() else " "


@dataclass(frozen=True, slots=True)
class PersonAction:
    """One action, before it is done. id: 32 hex digits; each id is done once."""

    pipeline: str
    act: Act
    tables: tuple[str, ...]
    author: Author
    subject: str = ""
    id: str = field(default_factory=lambda: uuid.uuid4().hex)

    def row(self, outcome: ActionOutcome, detail: str = "") -> dict[str, Any]:
        """Its row of control/actions."""
        return {
            "id": self.id,
            "pipeline": self.pipeline,
            "action": self.act,
            "tables": list(self.tables),
            "subject": self.subject[:ACTION_DETAIL_CHARACTERS_MAX],
            "user": self.author.user,
            "place": self.author.place,
            "outcome": outcome,
            "detail": " ".join(detail.split())[:ACTION_DETAIL_CHARACTERS_MAX],
            "recorded_at": datetime.now(UTC),
        }


def observed(lake: LakeFiles, acts: Sequence[tuple[PersonAction, str]]) -> set[str]:
    """Append a row for each action that happened outside tidegate, with its detail. Returns the ids
    that had no row.

    Raises LakeUnavailable, LakeRefused, CommitConflict.
    """
    rows = [action.row(ActionOutcome.DONE, detail) for action, detail in acts]
    return {row["id"] for row in control.append_new(lake, ACTIONS, rows, "id")}


@dataclass(slots=True)
class Result:
    """The line the code of an action leaves about it."""

    line: str = ""


@dataclass(frozen=True, slots=True)
class Recorded:
    """An action of control/actions, from its last row."""

    action: PersonAction
    outcome: ActionOutcome
    detail: str
    at: datetime


@contextmanager
def recorded(lake: LakeFiles, action: PersonAction) -> Iterator[Result]:
    """A context for an action's code. An error gets its row, and goes on to the caller.

    Raises AlreadyDone, before anything is done, if an action with this id was begun. Raises
    LakeUnavailable, LakeRefused.
    """
    if not control.append_once(lake, ACTIONS, action.row(ActionOutcome.BEGUN), "id"):
        raise AlreadyDone("this action was begun before", where=action.pipeline, remedy="see control/actions")
    result = Result()
    try:
        yield result
    except BaseException as error:
        refused = isinstance(error, UsageError | ConfigError)
        _end(
            lake, action, ActionOutcome.REFUSED if refused else ActionOutcome.FAILED, str(error) or type(error).__name__
        )
        raise
    _end(lake, action, ActionOutcome.DONE, result.line)


def _end(lake: LakeFiles, action: PersonAction, outcome: ActionOutcome, detail: str) -> None:
    """Append the row with the result. If this fails, the table shows the action as begun; nothing
    is undone.
    """
    try:
        control.append(lake, ACTIONS, [action.row(outcome, detail)])
    except (TidegateError, OSError) as error:
        log.warning("%s is %s, but control/actions doesn't have it: %s", action.act, outcome, error)


def actions(lake: LakeFiles) -> Sequence[Recorded]:
    """All actions, the newest first. Raises LakeUnavailable, LakeRefused."""
    rows = control.newest(lake, ACTIONS, by=["id"], order=["recorded_at"]).to_pylist()
    return sorted(map(_from_row, rows), key=lambda action: action.at, reverse=True)


def _from_row(row: dict[str, Any]) -> Recorded:
    author = Author(row["user"], row["place"])
    action = PersonAction(row["pipeline"], Act(row["action"]), tuple(row["tables"]), author, row["subject"], row["id"])
    return Recorded(action, ActionOutcome(row["outcome"]), row["detail"], row["recorded_at"])
