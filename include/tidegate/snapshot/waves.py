"""Waves as apply finds them in the log: open, ended, and refused ones.

In:  marks of one pipeline and source in log order, with the commit_ts and server that the log gives
     them; chunks.
Out: open and ended waves; per table a reason why a wave must be read again; tables that are whole.

A high mark ends the wave of its own token, whatever was begun since: another lake of the same pipeline
and source writes its marks into the same row of the server. A wave whose reader died or gave it up has no high
mark, and its chunks count for nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tidegate.snapshot.watermark import Manifest, Mark, MarkKind

Name = tuple[str, str]  # database and table at the source


@dataclass(frozen=True, slots=True)
class SeenMark:
    """A mark and where the log has it."""

    commit_ts: int
    server_uuid: str
    mark: Mark


@dataclass(frozen=True, slots=True)
class OpenWave:
    """A wave whose high mark hasn't come. low_ts: commit_ts of its low mark."""

    snapshot: str
    wave: int
    token: str
    low_ts: int
    server_uuid: str


@dataclass(frozen=True, slots=True)
class EndedWave:
    """A wave between its marks. Its tables are applied from after_ts on in the window that has high_ts.

    refused: why none of it counts; "" when it does. at: as the high mark's; low_ts is then the first moment after the
    last transaction in the view, perhaps the next one's, too. low_ts is 0 when nothing is known but `at`. exact: as the
    high mark's: the rows are whole tables as they were at low_ts.
    """

    snapshot: str
    wave: int
    token: str
    low_ts: int
    high_ts: int
    server_uuid: str
    tables: tuple[Manifest, ...]
    refused: str = ""
    at: str = ""
    exact: bool = False

    @property
    def after_ts(self) -> int:
        """The table's changes above it are applied again, and the wave's rows with them."""
        return self.low_ts - 1

    @property
    def ddl_after_ts(self) -> int:
        """A DDL above it may have come after the wave's first view. A low mark is no DDL."""
        return self.after_ts if self.at else self.low_ts


@dataclass(frozen=True, slots=True)
class WholeTable:
    """Every row that the source has of the table was written by a wave or by the log since its snapshot began."""

    snapshot: str
    database: str
    table: str
    end_ts: int


@dataclass(slots=True)
class Followed:
    """The marks of a window. open: by token; they go on into the next window."""

    open: dict[str, OpenWave] = field(default_factory=dict)
    ended: list[EndedWave] = field(default_factory=list)
    whole: list[WholeTable] = field(default_factory=list)


class LandedChunk(Protocol):
    """The questions to a chunk here."""

    @property
    def database(self) -> str: ...
    @property
    def table(self) -> str: ...
    @property
    def payload_crc32c(self) -> int: ...
    @property
    def server_uuid(self) -> str: ...


def follow(open_waves: Iterable[OpenWave], marks: Iterable[SeenMark]) -> Followed:
    """Go on from the waves that were open before a window. marks: the window's, in log order."""
    followed = Followed({wave.token: wave for wave in open_waves})
    for seen in marks:
        mark = seen.mark
        match mark.kind:
            case MarkKind.LOW:
                wave = OpenWave(mark.snapshot, mark.wave, mark.token, seen.commit_ts, seen.server_uuid)
                followed.open[mark.token] = wave
            case MarkKind.HIGH:
                followed.ended.append(_ended(followed.open.pop(mark.token, None), seen))
            case MarkKind.END:
                tables = (manifest.name for manifest in mark.tables)
                followed.whole += [WholeTable(mark.snapshot, *name, seen.commit_ts) for name in tables]
    return followed


def _ended(low: OpenWave | None, seen: SeenMark) -> EndedWave:
    mark, refused = seen.mark, ""
    if low is None and not mark.at:  # with a place, a rebuild begins there, after the low mark
        refused = "its low watermark isn't in the log"
    elif low is not None and low.server_uuid != seen.server_uuid:
        refused = f"the source changed from server {low.server_uuid} to {seen.server_uuid} while it was read"
    low_ts = low.low_ts if low is not None and not refused else 0
    place = (mark.snapshot, mark.wave, mark.token, low_ts, seen.commit_ts, seen.server_uuid)
    return EndedWave(*place, mark.tables, refused, mark.at, mark.exact)


def refusals(wave: EndedWave, chunks: Sequence[LandedChunk], changed: Collection[Name]) -> dict[Name, str]:
    """Per table of the wave why it must be read again; tables that aren't in it can be applied.

    chunks: all in bronze with the wave's token. changed: tables with a DDL in (low_ts, high_ts].
    """
    reasons: dict[Name, str] = {}
    by_name: dict[Name, list[LandedChunk]] = {}
    for chunk in chunks:
        by_name.setdefault((chunk.database, chunk.table), []).append(chunk)
    for manifest in wave.tables:
        landed = by_name.get(manifest.name, [])
        if wave.refused:
            reasons[manifest.name] = wave.refused
        elif manifest.name in changed:
            reasons[manifest.name] = "a DDL changed the table while it was read"
        elif Manifest.of(manifest.name, landed) != manifest:
            reasons[manifest.name] = (
                f"bronze has {len(landed)} chunks of it, or others than the {manifest.chunks} that were read"
            )
        elif any(chunk.server_uuid != wave.server_uuid for chunk in landed):
            reasons[manifest.name] = "it was read from another server than the log is from"
    return reasons
