"""Each table of silver beside what the source's SELECT and its log say, in the words of the table's own mode.

In:  the server, which is quiet; the log's replay; the lake.
Out: Compared.look() at each table: how many rows, versions and changes are equal, and what differs.

Silver and changelogs are read by DuckDB. Times are compared by the second, which is all that the log of a MariaDB has.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from tests.kit.changelogs import changes_of
from tests.soak.modes.pasts import Moment, Past
from tests.soak.source import DATABASE
from tests.support.readers import by_duckdb
from tidegate import tables
from tidegate.lake.files import LakeFiles
from tidegate.local.server import Server

_SHIFT: Final = 18
_SLACK_SECONDS: Final = 1
_DDL: Final = frozenset(("create", "alter", "truncate", "drop", "rename", "begin", "snapshot", "erased"))


class Span(NamedTuple):
    """A row as silver shows it. end: None, it is there."""

    text: str
    begin: Moment
    end: Moment | None


Spans: TypeAlias = dict[tuple[Any, ...], list[Span]]


class Blurred(NamedTuple):
    """What of a table nobody can know: its past before a moment, its changes. since: a commit_ts, None: of nothing."""

    past: bool = False
    since: int | None = 0
    changes: bool = False


CLEAR: Final = Blurred()


class Compared:
    """rows, versions, changes: that were equal. wrong: a line per table that differs."""

    def __init__(self, server: Server, lake: LakeFiles) -> None:
        self.rows = self.versions = self.changes = 0
        self.wrong: list[str] = []
        self._server, self._lake = server, lake

    def look(self, past: Past, blurred: Blurred = CLEAR) -> None:
        table = past.table
        source = self._selected(table.name)
        self._same(table.name, "the log's replay", past.rows.values() if table.key else source, source)
        path = self._lake.uri(tables.silver_path(DATABASE, table.name))
        silver = by_duckdb(path).to_pylist()
        shown = [table.shown(row) for row in source if table.takes(row)]
        if table.has("history"):
            self.rows += self._same(table.name, "current rows", [r for r in silver if r["_tg_is_current"]], shown)
            self._versions(past, silver, blurred.since if blurred.past else 0)
        elif table.has("soft"):
            self.rows += self._same(table.name, "live rows", [r for r in silver if not r["_tg_deleted"]], shown)
            if table.key and not blurred.past:
                self._deleted(past, [row for row in silver if row["_tg_deleted"]])
        else:
            self.rows += self._same(table.name, "rows", silver, shown)
        if table.has("changelog") and not blurred.changes:
            self._changes(past)

    def _selected(self, name: str) -> list[dict[str, Any]]:
        with self._server.connect(DATABASE) as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {name}")
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def _same(self, name: str, what: str, has: Iterable[Any], wanted: Iterable[Any]) -> int:
        has, wanted = Counter(map(_text, has)), Counter(map(_text, wanted))
        if has != wanted:
            lacks, strange = wanted - has, has - wanted
            some = f"lacks {[text[-400:] for text in lacks][:2]}, has {[text[-400:] for text in strange][:2]}"
            self.wrong.append(f"{name}: {what}: {lacks.total()} lacking, {strange.total()} strange: {some}")
            return 0
        return wanted.total()

    def _deleted(self, past: Past, silver: list[dict[str, Any]]) -> None:
        gone = [row for key, row in past.gone.items() if key not in past.rows]
        wanted = [past.table.shown(row) for row in gone if past.table.takes(row)]
        self.versions += self._same(past.table.name, "deleted rows", silver, wanted)

    def _versions(self, past: Past, silver: list[dict[str, Any]], since: int | None) -> None:
        if since is None:
            return
        has, wanted = _since(_spans_in(past, silver), _second(since)), _since(_spans_of(past), _second(since))
        bad = [key for key in {*has, *wanted} if not _alike(has.get(key, []), wanted.get(key, []))]
        if bad:
            both = f"{has.get(bad[0])} where the log has {wanted.get(bad[0])}"
            self.wrong.append(f"{past.table.name}: versions of {len(bad)} keys differ, {bad[0]}: {both}"[:3000])
        else:
            self.versions += sum(map(len, wanted.values()))

    def _changes(self, past: Past) -> None:
        """In order, as the log has them; statements are told apart."""
        rows = changes_of(self._lake, DATABASE, past.table.name)
        strange = sorted({row["op"] for row in rows if row["op"] not in {*_DDL, "insert", "update", "delete"}})
        if strange:
            self.wrong.append(f"{past.table.name}: its changelog has {strange}")
        has = [(row["op"], _logged(row["before"]), _logged(row["after"])) for row in rows if row["op"] not in _DDL]
        wanted = [(op, _logged(before), _logged(after)) for op, before, after in past.changes]
        if has != wanted:
            at = next((at for at, (a, b) in enumerate(zip(has, wanted, strict=False)) if a != b), -1)
            both = f"{has[at : at + 1]} where the log has {wanted[at : at + 1]}"
            self.wrong.append(f"{past.table.name}: changes: {len(has)} of {len(wanted)}, at {at}: {both}")
        else:
            self.changes += len(wanted)


def _text(row: Any) -> str:
    if isinstance(row, dict):
        return repr(
            sorted((name, _plain(value)) for name, value in row.items() if not name.startswith(("_tg_", "owners_")))
        )
    return repr(row)


def _plain(value: Any) -> Any:
    return value if value is None else str(value)


def _logged(row: dict[str, Any] | None) -> str | None:
    """A changelog's JSON and the log's values in one form: a moment's digits of a second that are zero don't count."""
    if row is None:
        return None
    return repr(sorted((name, None if value is None else _moment(str(value))) for name, value in row.items()))


def _moment(text: str) -> str:
    return text.replace("T", " ").rstrip("0").rstrip(".") if text[4:5] == text[7:8] == "-" else text


# --- versions ---------------------------------------------------------------------------------------------


def _spans_of(past: Past) -> Spans:
    """As the log says."""
    return {
        key: _joined(
            Span(_text(past.table.shown(it.row)), it.begin, it.end) for it in versions if past.table.takes(it.row)
        )
        for key, versions in past.versions.items()
    }


def _spans_in(past: Past, silver: list[dict[str, Any]]) -> Spans:
    spans: Spans = defaultdict(list)
    for row in sorted(silver, key=lambda row: int(row["_tg_valid_from"])):
        begin, end = row["_tg_valid_from"], row["_tg_valid_to"]
        ended = None if end is None else Moment(end, _second(end))
        spans[past.table.shown_key(row)].append(Span(_text(row), Moment(begin, _second(begin)), ended))
    return {key: _joined(those) for key, those in spans.items()}


def _since(spans: Spans, second: int) -> Spans:
    """Versions that end later, and none begins before."""
    begun = Moment(0, second)
    return (
        {
            key: [
                Span(span.text, begun if span.begin.second <= second + _SLACK_SECONDS else span.begin, span.end)
                for span in those
                if span.end is None or span.end.second > second + _SLACK_SECONDS
            ]
            for key, those in spans.items()
        }
        if second
        else spans
    )


def _second(commit_ts: int) -> int:
    return (commit_ts >> _SHIFT) // 1000


def _joined(spans: Iterable[Span]) -> list[Span]:
    """A change of what silver doesn't show may have made a version or not."""
    joined: list[Span] = []
    for span in spans:
        if joined and joined[-1].text == span.text and joined[-1].end == span.begin:
            joined[-1] = Span(span.text, joined[-1].begin, span.end)
        else:
            joined.append(span)
    return joined


def _alike(has: Sequence[Span], wanted: Sequence[Span]) -> bool:
    return len(has) == len(wanted) and all(
        a.text == b.text and _near(a.begin, b.begin) and _near(a.end, b.end) for a, b in zip(has, wanted, strict=True)
    )


def _near(has: Moment | None, wanted: Moment | None) -> bool:
    if has is None or wanted is None:
        return has is wanted
    return abs(has.second - wanted.second) <= _SLACK_SECONDS
