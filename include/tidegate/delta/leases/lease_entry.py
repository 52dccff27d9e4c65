"""The content of a lease's folder: numbered entries, each with the holder at that time.

In:  a store, a process on this machine.
Out: LeaseEntry, as JSON in `<number:020d>.json`; whether the process that made one is gone.

The times of day in an entry are for people. They never decide whether a lease is over.
"""

from __future__ import annotations

import json
import os
import socket
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from tidegate.delta.stores.store import LogStore
from tidegate.errors import LakeRefused, LakeUnavailable
from tidegate.limits import LEASE_READ_ATTEMPTS_MAX


class Process(NamedTuple):
    """A process of some machine. start: ticks since boot. boot_id and namespaces are empty without
    /proc.

    namespaces: where pid and start are valid: pid 7 of a container is another process than pid 7 of
    the machine.
    """

    host: str
    boot_id: str
    namespaces: str
    pid: int
    start: int

    @classmethod
    def this(cls) -> Process:
        """The calling process."""
        boot_id = ""
        with suppress(OSError):
            boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        process = _stat(os.getpid())
        return cls(
            socket.gethostname(),
            boot_id,
            f"{_namespace('pid')}{_namespace('time')}",
            os.getpid(),
            process.start if process else 0,
        )


@dataclass(frozen=True, slots=True)
class LeaseEntry:
    """holder: its work, in a person's words. attempt: an id of the taking; a process that takes a
    lease twice has two.

    since_ms, written_ms: when the lease was taken, and when this entry was made; Unix time by the
    holder's clock.
    """

    number: int
    epoch: int
    attempt: str
    holder: str
    process: Process
    term_seconds: float
    since_ms: int
    written_ms: int
    released: bool = False

    def encoded(self) -> bytes:
        return json.dumps(asdict(self) | {"process": self.process._asdict()}, indent=1).encode()

    @classmethod
    def decoded(cls, data: bytes, where: str) -> LeaseEntry:
        """Raises LakeRefused if the data is no entry."""
        try:
            values = json.loads(data)
            values = {field.name: values[field.name] for field in fields(cls)}
            return cls(**values | {"process": Process(**values["process"])})
        except (ValueError, KeyError, TypeError) as error:
            raise LakeRefused(
                f"isn't an entry of a lease: {error}", where=where, remedy="remove it while nothing of this lake runs"
            ) from error

    def told(self) -> str:
        """The holder, for a message."""
        return (
            f"{self.holder} on {self.process.host}, pid {self.process.pid}, since {_clock(self.since_ms)} UTC,"
            f" last seen {_clock(self.written_ms)}"
        )


def entry_name(number: int) -> str:
    return f"{number:020d}.json"


def numbers(store: LogStore) -> list[int]:
    """The numbers of the present entries, ascending."""
    names = (entry.name.partition(".") for entry in store.names())
    return [int(number) for number, _, kind in names if number.isdigit() and kind == "json"]


def newest_entry(store: LogStore) -> LeaseEntry | None:
    """The entry with the largest number, which is never removed; None before the first."""
    for _ in range(LEASE_READ_ATTEMPTS_MAX):
        present = numbers(store)
        if not present:
            return None
        entry = read_entry(store, present[-1])
        if entry is not None:  # else newer entries came meanwhile, and this one was removed
            return entry
    raise LakeUnavailable("entries vanish faster than they are read", where=store.where, remedy="try again")


def read_entry(store: LogStore, number: int) -> LeaseEntry | None:
    """One entry; None if it doesn't exist (any more)."""
    name = entry_name(number)
    data = store.get(name)
    return None if data is None else LeaseEntry.decoded(data, f"{store.where}/{name}")


def is_gone(entry: LeaseEntry) -> bool:
    """Whether the process that made it has certainly ended. It ran on this machine, since its last
    boot.
    """
    if not _same_place(entry.process):
        return False
    process = _alive(entry.process.pid)
    return process is False or (isinstance(process, _Stat) and process.start != entry.process.start)


def is_alive(entry: LeaseEntry) -> bool:
    """Whether that process certainly runs, and wrote the entry within its term by the shared clock."""
    if not _same_place(entry.process) or time.time() * 1000 - entry.written_ms > entry.term_seconds * 1000:
        return False
    process = _alive(entry.process.pid)
    return isinstance(process, _Stat) and process.start == entry.process.start


def _same_place(process: Process) -> bool:
    here = Process.this()
    return bool(here.boot_id and here.namespaces.startswith("pid")) and here[:3] == process[:3]


def _namespace(kind: str) -> str:
    with suppress(OSError):  # older kernels lack the time namespace
        return str(Path(f"/proc/self/ns/{kind}").readlink())
    return ""


class _Stat(NamedTuple):
    state: str
    threads: int
    start: int


def _alive(pid: int) -> _Stat | bool:
    """The system's word on a process. False: it doesn't exist. True: it exists, but may not be
    inspected.
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # another user's
    process = _stat(pid)
    # A killed process stays as a zombie until its parent collects it. Then none of its threads runs any more.
    if process is not None and process.state in "ZX" and process.threads <= 1:
        return False
    return process or True


def _stat(pid: int) -> _Stat | None:
    """/proc/<pid>/stat (proc(5)): fields 3, 20 and 22, behind a name that may hold anything."""
    with suppress(OSError):
        rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return _Stat(rest[0], int(rest[17]), int(rest[19]))
    return None


def _clock(unix_ms: int) -> str:
    return datetime.fromtimestamp(unix_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
