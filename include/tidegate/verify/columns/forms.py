"""One column on both sides as SQL text: where values are equal, so are the texts, and the other way round.

In:  the server's data_type and column_type of a column (information_schema).
Out: an expression for MySQL and MariaDB and one for DuckDB; NULL for NULL, and for dates that no calendar has.

There are three kinds. EXACT: short ASCII without a comma (integers, decimals, dates, BIT, TIME, UUID). BYTES: text as
UTF-8, and binaries as the HEX of their bytes; a row's hash takes their hash. NUMBER: FLOAT and DOUBLE: programs write
their digits differently, so they aren't in the hash, and are compared as DOUBLE. A server writes the shortest digits
that read back as the same DOUBLE. Text of up to 64 KiB stands in the row's hash as it is, after its length: that costs
a third less on both sides than a hash of its own.

A value beyond the server's max_allowed_packet is `?` in a hash, unlike any row of silver: such rows are compared by
their values (cells.py), as is every row with different hashes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

from tidegate.errors import VerifyError
from tidegate.mysql.sql_text.sql import UNICODE, double_literal, if_dated, quote_name, text_literal
from tidegate.query.duck import identifier
from tidegate.remedy import REPORT
from tidegate.silver_names import silver_column
from tidegate.verify.columns.column_types import due_type

_INTEGERS: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "year"})
_LISTED: Final = frozenset({"enum", "set"})
_SHORT: Final = frozenset({"char", "varchar", "tinytext", "text"}) | _LISTED
_TEXTS: Final = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"}) | _LISTED
_SHOWN: Final = frozenset({"time", "uuid", "inet4", "inet6"})
_BINARIES: Final = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_GEOMETRIES: Final = frozenset(
    {"geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon"}
    | {"geomcollection", "geometrycollection"}
)
_PLAIN: Final = re.compile(r"[-0-9a-zA-Z:. ]*")
_MOMENT: Final = "%Y-%m-%d %H:%M:%S.%f"

KeyText = str | float | None


class FormKind(Enum):
    """How a value takes part in a comparison."""

    EXACT = auto()
    BYTES = auto()
    NUMBER = auto()


@dataclass(frozen=True, slots=True)
class ColumnForm:
    """data_type, charset: as information_schema has them; charset "" where there is none. due_type: of silver's column,
    as Spark SQL names it.
    """

    name: str
    kind: FormKind
    source: str
    silver: str
    data_type: str
    charset: str = ""
    due_type: str = ""
    due_name: str = ""

    @property
    def source_hashed(self) -> str:
        """As a part of the row's hash: never NULL."""
        name = quote_name(self.name)
        if self.kind is not FormKind.BYTES:
            return f"IFNULL({self.source}, 'N')"
        if self.data_type in _SHORT:
            text = name if self.charset == "utf8mb4" else self.source
            return f"IF({name} IS NULL, 'N', IFNULL(CONCAT(LENGTH({text}), ':', {text}), '?'))"
        return f"IF({name} IS NULL, 'N', IFNULL({source_hash(self.source)}, '?'))"

    @property
    def silver_hashed(self) -> str:
        """The same text in DuckDB."""
        if self.kind is not FormKind.BYTES:
            return f"coalesce({self.silver}, 'N')"
        if self.data_type in _SHORT:
            return f"coalesce(strlen({self.silver}) || ':' || {self.silver}, 'N')"
        return f"coalesce({silver_hash(self.silver)}, 'N')"

    @property
    def source_key(self) -> str:
        """As a part of a key: ASCII without a comma."""
        return f"HEX({self.source})" if self.kind is FormKind.BYTES else self.source

    @property
    def silver_key(self) -> str:
        return f"hex({self.silver})" if self.kind is FormKind.BYTES else self.silver

    def literal(self, text: KeyText) -> str | None:
        """A key's text as a literal equal to the value at the server; None for NULL, which equals no literal."""
        if text is None:
            return None
        if isinstance(text, float):
            return double_literal(text)
        if self.data_type == "bit" and self.kind is FormKind.EXACT:
            return str(int(text, 16))
        if self.kind is FormKind.EXACT:
            return text if self.data_type in _INTEGERS or self.data_type == "decimal" else f"'{_plain(text)}'"
        if self.charset:
            return text_literal(bytes.fromhex(text), self.charset)
        return f"x'{_plain(text)}'"

    @property
    def bound(self) -> str:
        """An expression for the value as the server orders it, to be made a literal by bound_literal()."""
        name = quote_name(self.name)
        if self.data_type in _LISTED or self.data_type == "bit":
            return f"CAST({name} AS UNSIGNED)"
        if self.kind is not FormKind.BYTES:
            return self.source
        return self.source_key if self.charset in UNICODE else f"HEX({name})"

    def bound_literal(self, text: str) -> str:
        """Text in its own bytes after the introducer of its character set: it is ordered as the column is."""
        if self.data_type in _LISTED or self.data_type == "bit":
            return str(int(text))
        if self.kind is FormKind.NUMBER:
            return self.literal(float(text)) or "NULL"
        if self.kind is FormKind.BYTES:
            return f"_{self.charset} x'{_plain(text)}'" if self.charset else f"x'{_plain(text)}'"
        return self.literal(text) or "NULL"


def source_hash(expression: str) -> str:
    """32 hex digits. SHA2, since a server may have no MD5 any more (MySQL 9.6)."""
    return f"LEFT(SHA2({expression}, 256), 32)"


def silver_hash(expression: str) -> str:
    """The same digits in DuckDB."""
    return f"left(sha256({expression}), 32)"


def decimal_text(in_silver: str) -> str:
    """A DECIMAL in DuckDB as a server writes it: DuckDB has no 0 before the point where all digits
    are after it.
    """
    return f"regexp_replace(CAST({in_silver} AS VARCHAR), '^(-?)[.]', '\\10.')"


def _plain(text: str) -> str:
    if not _PLAIN.fullmatch(text):
        raise VerifyError(f"a key reads {text!r}, which no key of its type does", remedy=REPORT)
    return text


def form(name: str, data_type: str, column_type: str, charset: str = "", silver: str = "") -> ColumnForm:
    """How a column of this type is compared. silver: its name there, where a rule gives one.

    Raises VerifyError for a type that isn't known.
    """
    own = silver or silver_column(name)
    made = _form(name, data_type, column_type, (charset, own))
    return replace(made, due_type=due_type(data_type, column_type), due_name=own)


def _form(name: str, data_type: str, column_type: str, further: tuple[str, str]) -> ColumnForm:
    charset, own = further
    kind, declared = data_type.lower(), column_type.lower()
    here, in_silver = quote_name(name), identifier(own)

    def exact(source: str, silver: str) -> ColumnForm:
        return ColumnForm(name, FormKind.EXACT, source, silver, kind)

    if declared == "year(2)":  # the server shows two digits of the year that it stores and logs
        return exact(f"CAST({here} + 0 AS CHAR)", f"CAST(CAST({in_silver} AS INTEGER) % 100 AS VARCHAR)")
    if kind in _INTEGERS:
        return exact(f"CAST({here} + 0 AS CHAR)", f"CAST(CAST({in_silver} AS HUGEINT) AS VARCHAR)")
    if kind == "bit":
        if declared in ("bit", "bit(1)"):
            return exact(
                f"LPAD(HEX({here} + 0), 2, '0')", f"lpad(CAST(CAST({in_silver} AS INTEGER) AS VARCHAR), 2, '0')"
            )
        digits = (int(declared[4:-1]) + 7) // 8 * 2
        return exact(f"LPAD(HEX({here} + 0), {digits}, '0')", f"hex({in_silver})")
    if kind == "decimal":
        value = f"{here} + 0" if "zerofill" in declared else here
        return exact(f"CAST({value} AS CHAR)", decimal_text(in_silver))
    if kind in ("float", "double"):
        return ColumnForm(name, FormKind.NUMBER, f"CAST({here} + 0e0 AS CHAR)", f"CAST({in_silver} AS DOUBLE)", kind)
    if kind == "date":
        return exact(if_dated(here, f"CAST({here} AS CHAR)"), f"strftime({in_silver}, '%Y-%m-%d')")
    if kind in ("datetime", "timestamp"):
        moment = f"timezone('UTC', {in_silver})" if kind == "timestamp" else in_silver
        return exact(if_dated(here, f"CAST(CAST({here} AS DATETIME(6)) AS CHAR)"), f"strftime({moment}, '{_MOMENT}')")
    if kind in _SHOWN:
        return exact(f"CAST({here} AS CHAR)", in_silver)
    source, silver = _bytes_of(kind, here, in_silver)
    if not source:
        raise VerifyError(f"column {name} has type {column_type}, which verify doesn't know", remedy=REPORT)
    return ColumnForm(name, FormKind.BYTES, source, silver, kind, charset if kind in _TEXTS else "")


def _bytes_of(kind: str, here: str, in_silver: str) -> tuple[str, str]:
    if kind in _TEXTS:
        return f"CONVERT({here} USING utf8mb4)", in_silver
    if kind == "json":
        return f"CAST({here} AS CHAR)", in_silver
    if kind in _BINARIES:
        return here, in_silver
    if kind in _GEOMETRIES:
        # SRID (four bytes) and WKB -> WKB, or PostGIS's EWKB where there is one: its flag is in the type's last byte.
        whole = f"HEX({here})"
        ewkb = f"CONCAT(SUBSTR({whole}, 9, 8), '20', LEFT({whole}, 8), SUBSTR({whole}, 19))"
        return f"IF(LEFT({whole}, 8) IN ('', '00000000'), SUBSTR({whole}, 9), {ewkb})", f"hex({in_silver})"
    if kind == "vector":
        digits = "hex(CAST(CAST(x AS BIT) AS BLOB))"
        little = " || ".join(f"substr({digits}, {at}, 2)" for at in (7, 5, 3, 1))
        return f"HEX({here})", f"array_to_string(list_transform({in_silver}, lambda x: {little}), '')"
    return "", ""
