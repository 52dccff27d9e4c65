"""The lake's record of value logs that may hold acknowledged commits which bronze lacks.

In:  a lake, a source with promises (a Pump, semi_sync), the value log of its capture.
Out: Owing. begin(), before the first acknowledgement: nothing, or StrayValueLog with the name of
     another log in debt. check_none_elsewhere(), before bronze gets another log's segments.
     settle(), once all of it is in bronze. debts() and forget(), for a person who accepts a loss.

A value log is a folder on one machine. If capture starts on another machine, bronze takes other
segments under the first log's numbers. Commits that were acknowledged only there would be
forgotten: nobody can send them again, so the lake has an object per owing log,
control/value_logs/<source>/<id of the log>.json. It is made before anything is acknowledged. It is
removed when a run has ended with everything landed, normally or by the source's error. After a
kill, or if the lake failed, it stays. The folder records that the object exists, so a start needs
no lake.
"""

from __future__ import annotations

import json
import logging
import socket
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Self

from tidegate.capture.value_log.log import ValueLog
from tidegate.delta.stores.by_place import log_store
from tidegate.delta.stores.store import LogStore, sync
from tidegate.errors import LakeRefused, LakeUnavailable, StrayValueLog, ValueLogError
from tidegate.failpoint import failpoint
from tidegate.lake.files import LakeFiles

log = logging.getLogger(__name__)

VALUE_LOGS: Final = "control/value_logs"
_NOTED: Final = "owes"
_PUT_BACK: Final = "put-back"  # in place of a log's id


@dataclass(frozen=True, slots=True)
class Debt:
    """log: the id of a value log. host, folder: where it was. since_ms: since when it acknowledged,
    Unix time.
    """

    log: str
    host: str
    folder: str
    since_ms: int

    @classmethod
    def decoded(cls, name: str, data: bytes) -> Self:
        """An unreadable object gives only its name."""
        try:
            values = json.loads(data)
            return cls(name, str(values["host"]), str(values["folder"]), int(values["since_ms"]))
        except (ValueError, KeyError, TypeError):
            return cls(name, "", "", 0)

    @property
    def is_of_lost_lake(self) -> bool:
        """Whether this stands for the lost lake of a restore: commits since the backup were only in
        that lake.
        """
        return self.log == _PUT_BACK

    def told(self) -> str:
        if self.is_of_lost_lake:
            return f"the lake that its backup {self.folder} replaced (id {self.log})"
        since = f"{datetime.fromtimestamp(self.since_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
        return f"value log {self.log} ({self.folder} on {self.host}, since {since})"


def owes(folder: Path) -> bool:
    """Whether commits of its source were acknowledged because the value log has them, as its folder
    records.
    """
    return (folder / _NOTED).exists()


class Owing:
    """The debts of one source. Raises LakeUnavailable and LakeRefused as the lake does."""

    def __init__(self, lake: LakeFiles, source: str) -> None:
        self._source = source
        self._store: LogStore = log_store(lake.uri(VALUE_LOGS), lake.storage_options).folder(source)

    def begin(self, value_log: ValueLog) -> bool:
        """Call it before anything is acknowledged. Returns whether the log owed nothing until now.

        Raises StrayValueLog, ValueLogError, LakeUnavailable.
        """
        noted = value_log.folder / _NOTED
        try:
            self.check_none_elsewhere(value_log)
            debt = {"host": socket.gethostname(), "folder": str(value_log.folder), "since_ms": int(time.time() * 1000)}
            is_new = self._store.create(f"{value_log.id}.json", json.dumps(debt).encode()) and not noted.exists()
            failpoint("capture_debt_written")
            self._check_still_none(value_log, is_new=is_new)
        except LakeUnavailable as error:
            if not noted.exists():
                raise
            log.warning("the lake can't be asked which value logs owe it something; this one does: %s", error)
            return False
        failpoint("capture_debt_noted")
        try:
            noted.touch()
            sync(str(value_log.folder))
        except OSError as error:
            raise ValueLogError(
                f"can't be written: {error.strerror}", where=str(noted), remedy="check this disk"
            ) from error
        return is_new

    def check_none_elsewhere(self, value_log: ValueLog) -> None:
        """Raises StrayValueLog if another log owes commits; LakeUnavailable."""
        others = [debt for debt in self.debts() if debt.log != value_log.id]
        if others:
            raise self._owed_elsewhere(others, value_log.folder)

    def _check_still_none(self, value_log: ValueLog, *, is_new: bool) -> None:
        """Look again after our own record is written: two logs that begin at once can't both miss
        the other's. Raises as check_none_elsewhere.
        """
        try:
            self.check_none_elsewhere(value_log)
        except StrayValueLog:
            if is_new:
                self.forget(value_log.id)
            raise

    def note_put_back(self, backup: str) -> None:
        """The lake was restored from a backup: nobody knows what was acknowledged since the backup."""
        debt = {"host": socket.gethostname(), "folder": backup, "since_ms": int(time.time() * 1000)}
        self._store.create(f"{_PUT_BACK}.json", json.dumps(debt).encode())

    def settle(self, value_log: ValueLog) -> None:
        """All of the log is in bronze, and nothing more is acknowledged. After a failure the next
        run tries again.
        """
        try:
            self.debts()  # if the lake is away, it still counts on this log: then the note must stay for the next start
            (value_log.folder / _NOTED).unlink(missing_ok=True)
            sync(str(value_log.folder))
            self.forget(value_log.id)
        except (OSError, LakeUnavailable, LakeRefused) as error:
            log.warning("the lake still counts on this machine's value log of %s: %s", self._source, error)

    def debts(self) -> list[Debt]:
        """The owing logs, in order of their ids."""
        names = [entry.name for entry in self._store.names() if entry.name.endswith(".json")]
        objects = {name: self._store.get(name) for name in names}
        return [Debt.decoded(name.removesuffix(".json"), data) for name, data in objects.items() if data is not None]

    def forget(self, log_id: str) -> None:
        """A log owes nothing any more, or a person accepts the loss of the commits that only it
        has.
        """
        self._store.delete([f"{log_id}.json"])

    def _owed_elsewhere(self, others: list[Debt], folder: Path) -> StrayValueLog:
        forget = f"`tidegate vlog owed PIPELINE --source {self._source} --forget {others[0].log}` accepts"
        if others[0].is_of_lost_lake:
            return StrayValueLog(
                f"{others[0].told()} had acknowledged commits that this one may lack; nobody can send them again",
                where=str(folder),
                remedy=f"{forget} the loss. Then read the tables again: `tidegate snapshot start`",
            )
        return StrayValueLog(
            f"{', '.join(debt.told() for debt in others)} has acknowledged commits that bronze may lack;"
            " nobody can send them again",
            where=str(folder),
            remedy="start capture on that log's machine, or move that folder here in place of this one. If it is"
            f" lost for good, {forget} the loss",
        )
