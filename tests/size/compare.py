"""Whether silver is the source: how many rows, and a checksum of all their values, by SELECT on either side.

In:  a server that nobody writes to, a lake.
Out: compared(): rows; raises Wrong. Nothing of tidegate's takes part: each side's SQL makes the same text of each row,
     and adds up 60 bits of its SHA-256.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.size.tables import DATABASE, columns_of, names_at
from tests.soak.witness import Wrong
from tidegate.local.server import Server
from tidegate.query import duck
from tidegate.tables import silver_path

_MEMORY_BYTES: Final = 1 << 30
_MOMENTS: Final = ("TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {})", "epoch_us({})")
# Data type -> text of a value, in the source's SQL and in DuckDB's; others are cast.
_FORMS: Final = {
    "double": ("CAST({} * 8 AS DECIMAL(30, 0))",) * 2,
    "datetime": _MOMENTS,
    "timestamp": _MOMENTS,
    "varbinary": ("HEX({})", "hex({})"),
    "json": ("REPLACE({}, ' ', '')", "replace({}, ' ', '')"),
    "longtext": ("REPLACE({}, ' ', '')", "replace({}, ' ', '')"),
}
_SUMS: Final = (
    "COALESCE(SUM(CAST(CONV(LEFT(SHA2({row}, 256), 15), 16, 10) AS DECIMAL(20))), 0)",
    "COALESCE(SUM(CAST('0x' || left(sha256({row}), 15) AS BIGINT)), 0)",
)
_CASTS: Final = ("CAST({} AS CHAR)", "CAST({} AS VARCHAR)")
_QUOTES: Final = ("`", '"')


def compared(server: Server, lake: Path) -> int:
    """All tables that the source has. Raises Wrong."""
    rows, wrong = 0, []
    with (
        duck.connect(_MEMORY_BYTES) as database,
        server.connect(DATABASE) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SET SESSION time_zone = '+00:00'")
        for table in names_at(server):
            columns = columns_of(server, table)
            cursor.execute(_statement(0, columns, table))
            source = tuple(cursor.fetchone() or ())
            place = duck.literal(str(lake / silver_path(DATABASE, table)))
            there = (lake / silver_path(DATABASE, table)).exists()
            said = database.execute(_statement(1, columns, f"delta_scan({place})")).fetchone() if there else None
            rows += int(source[0])
            if source != said:
                wrong.append(f"{table}: {source} at the source, {said} in silver")
    if wrong:
        raise Wrong(f"{len(wrong)} tables differ by plain SELECT: {wrong[:5]}")
    return rows


def _statement(side: int, columns: Sequence[tuple[str, str]], of: str) -> str:
    quote = _QUOTES[side]
    texts = []
    for name, kind in columns:
        form = _FORMS.get(kind, ("{}", "{}"))[side].format(f"{quote}{name}{quote}")
        texts.append(f"COALESCE({_CASTS[side].format(form)}, '~')")
    total = _SUMS[side].format(row=f"CONCAT_WS('|', {', '.join(texts)})")
    return f"SELECT COUNT(*), {_CASTS[side].format(total)} FROM {of}"
