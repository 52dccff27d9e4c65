"""Every character set of both servers: each byte and each sequence is the text that the server converts it to.

What the server itself can't convert is an error here, never another character.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from tests.kit.decoding import ALL_TIME, changed_rows, current_binlog, segment_of_file, version_on
from tests.support.servers import FreshDatabase
from tests.unit.binlog.on_servers import log_of
from tidegate.binlog.rows.decode import decode_segment
from tidegate.errors import UnsupportedValue
from tidegate.local.server import Server
from tidegate.schema.model.charset_text import SINGLE_BYTE, codec_of, decode_text, utf8_table

NOT_TEXT = {"binary", "filename"}


@contextmanager
def session(server: Server, database: str) -> Iterator[Any]:
    """A cursor whose statements stay out of the binlog and in which no byte is refused."""
    with server.connect(database).cursor() as cursor:
        cursor.execute("SET SESSION sql_log_bin = 0, sql_mode = ''")
        cursor.execute("CREATE TABLE IF NOT EXISTS bytes (b BINARY(1) PRIMARY KEY)")
        cursor.executemany("INSERT IGNORE INTO bytes VALUES (%s)", [(bytes([n]),) for n in range(256)])
        yield cursor


def wrong(cursor: Any, charset: str, sequences: str) -> list[tuple[bytes, str, str | None]]:
    """(bytes, the server's text, ours) where they differ; sequences: SQL that gives a column b of bytes."""
    cursor.execute(
        f"SELECT HEX(b), HEX(CONVERT(b USING {charset})), HEX(CONVERT(CONVERT(b USING {charset}) USING utf32))"
        f" FROM ({sequences}) AS s"
    )
    found, compared = [], 0
    for raw_hex, kept, text_hex in cursor.fetchall():
        if kept != raw_hex or text_hex is None:
            continue  # not well-formed: no column holds it
        raw, text = bytes.fromhex(raw_hex), bytes.fromhex(text_hex).decode("utf_32_be", "surrogatepass")
        halves = charset == "ucs2" and any(0xD8 <= byte <= 0xDF for byte in raw[::2])  # MySQL's text ends there
        undefined = (
            halves or ("?" in text and b"?" not in raw) or any("\ud800" <= c <= "\udfff" for c in text) or not text
        )
        try:
            ours = decode_text(charset, raw)
        except UnsupportedValue:
            ours = None
        compared += 1
        if ours != (None if undefined else text):
            found.append((raw, text, ours))
    assert compared > 50
    return found[:10]


def charsets_of(server: Server) -> dict[str, int]:
    """Name -> most bytes per character."""
    rows = server.query("SELECT character_set_name, maxlen FROM information_schema.character_sets")
    return {str(name): int(size) for name, size in rows if name not in NOT_TEXT}


@pytest.mark.server
def test_every_character_set_has_a_decoder(any_server: Server) -> None:
    found = charsets_of(any_server)
    assert len(found) > 35
    for charset, size in found.items():
        codec_of(charset)
        assert (size == 1) == (charset in SINGLE_BYTE)


@pytest.mark.server
def test_every_single_byte(any_server: Server, fresh_database: FreshDatabase) -> None:
    with session(any_server, fresh_database(any_server)) as cursor:
        for charset in charsets_of(any_server).keys() - {"ucs2", "utf16", "utf16le", "utf32"}:
            assert wrong(cursor, charset, "SELECT b FROM bytes") == [], charset


@pytest.mark.server
def test_every_sequence_of_two_bytes(any_server: Server, fresh_database: FreshDatabase) -> None:
    with session(any_server, fresh_database(any_server)) as cursor:
        for charset, size in charsets_of(any_server).items():
            if size > 1 and charset != "utf32":
                # Below 0x80 it is a byte of its own, whatever follows, but for ucs2 and utf16
                least = "00" if charset.startswith(("ucs", "utf16")) else "80"
                pairs = f"SELECT CONCAT(x.b, y.b) AS b FROM bytes x, bytes y WHERE x.b >= x'{least}'"
                assert wrong(cursor, charset, pairs) == [], charset


@pytest.mark.server
@pytest.mark.parametrize("charset", ["ujis", "eucjpms", "utf8mb3", "utf8mb4"])
def test_every_sequence_of_three_bytes(any_server: Server, fresh_database: FreshDatabase, charset: str) -> None:
    first = "x'8F'" if "utf8" not in charset else "x'E0', x'E1', x'E9', x'ED', x'EF'"
    triples = (
        "SELECT CONCAT(x.b, y.b, z.b) AS b FROM bytes x, bytes y, bytes z"
        f" WHERE x.b IN ({first}) AND y.b >= x'80' AND z.b >= x'80'"
    )
    with session(any_server, fresh_database(any_server)) as cursor:
        assert wrong(cursor, charset, triples) == []


FOUR = {
    "gb18030": "x.b IN (x'81', x'83', x'84', x'90', x'E3') AND y.b BETWEEN '0' AND '9' AND z.b >= x'81'",
    "utf8mb4": "x.b BETWEEN x'F0' AND x'F5' AND y.b >= x'80' AND z.b IN (x'80', x'A1', x'BF') AND w.b >= x'7F'",
    "utf32": "x.b = x'00' AND y.b < x'12' AND z.b IN (x'00', x'20', x'D7', x'D8', x'DF', x'E0', x'FF')",
    "utf16": "x.b IN (x'D8', x'DB') AND y.b IN (x'00', x'3D', x'FF') AND z.b IN (x'DC', x'DD', x'DF')",
    "utf16le": "x.b IN (x'00', x'3D', x'FF') AND y.b IN (x'D8', x'DB') AND z.b IN (x'00', x'20', x'FF')",
    "ucs2": "x.b IN (x'00', x'D8') AND y.b IN (x'00', x'3D', x'FF') AND z.b IN (x'00', x'DC', x'DD')",
}


@pytest.mark.server
@pytest.mark.parametrize("charset", FOUR)
def test_sequences_of_four_bytes(any_server: Server, fresh_database: FreshDatabase, charset: str) -> None:
    if charset not in charsets_of(any_server):
        pytest.skip(f"{any_server.flavour} has no {charset}")
    last = " AND w.b BETWEEN '0' AND '9'" if charset == "gb18030" else ""
    sequences = (
        f"SELECT CONCAT(x.b, y.b, z.b, w.b) AS b FROM bytes x, bytes y, bytes z, bytes w WHERE {FOUR[charset]}{last}"
    )
    with session(any_server, fresh_database(any_server)) as cursor:
        assert wrong(cursor, charset, sequences) == []


@pytest.mark.server
def test_columns_in_single_byte_sets(any_server: Server, fresh_database: FreshDatabase) -> None:
    sets = sorted(SINGLE_BYTE)
    defined = [bytes(n for n in range(256) if utf8_table(charset)[n]) for charset in sets]
    columns = ", ".join(f"{charset} VARCHAR(256) CHARACTER SET {charset}" for charset in sets)
    rows = [", ".join(f"x'{text.hex()}'" for text in defined), ", ".join(f"x'{text[64:].hex()}'" for text in defined)]
    rows += [", ".join("NULL" for _ in sets), ", ".join("''" for _ in sets)]
    statements = [f"CREATE TABLE t (id INT PRIMARY KEY, {columns})"]
    statements += [f"INSERT INTO t VALUES ({number}, {row})" for number, row in enumerate(rows)]
    database = fresh_database(any_server)
    decoded = log_of(any_server, database, statements)
    assert decoded.problems == ()
    truth = any_server.query(f"SELECT {', '.join(sets)} FROM t ORDER BY id", database=database)
    assert [tuple(row[charset] for charset in sets) for row in changed_rows(decoded)] == truth


@pytest.mark.server
def test_key_values_that_read_the_same_hold_the_table(any_server: Server, fresh_database: FreshDatabase) -> None:
    """Each key has two values that SELECT shows alike; one alone of the usual kind is followed."""
    usual, other = "_cp932 0x81BE", "_cp932 0x879C"
    for column, fine, twice in (
        ("ENUM('', 'a')", ["''", "'a'"], ["0"]),
        ("SET('', 'a')", ["0", "'a'"], ["1"]),
        ("VARCHAR(9) CHARACTER SET cp932", [usual, "'x'"], [other]),
        ("VARCHAR(9) CHARACTER SET armscii8", ["_armscii8 0x27", "_armscii8 0xB2"], ["_armscii8 0xFF"]),
    ):
        database = fresh_database(any_server)
        create = ["SET sql_mode = ''", f"CREATE TABLE t (k {column} PRIMARY KEY)"]
        for values, held in ((fine, False), (fine + twice, True)):
            any_server.query("FLUSH BINARY LOGS")
            path = current_binlog(any_server)
            with any_server.connect(database).cursor() as cursor:
                cursor.execute("DROP TABLE IF EXISTS t")
                for sql in [*create, *(f"INSERT INTO t VALUES ({value})" for value in values)]:
                    cursor.execute(sql)
            assert any_server.query("SELECT COUNT(*) FROM t", database=database) == [(len(values),)]
            name = (database, "t")
            versions = {name: [version_on(any_server, *name)]}
            found = decode_segment(segment_of_file(path.read_bytes()), versions, {name: ALL_TIME})
            assert ["read the same" in problem.message for problem in found.problems] == [True] * held, column


@pytest.mark.parametrize("charset", sorted(SINGLE_BYTE))
def test_the_table_of_utf8_is_what_the_decoder_says(charset: str) -> None:
    for byte, packed in enumerate(utf8_table(charset).tolist()):
        if not packed:
            with pytest.raises(UnsupportedValue, match=f"{byte:02x} are not valid {charset}"):
                decode_text(charset, bytes([byte]))
        else:
            assert (packed & 0xFFFFFF).to_bytes(3, "little")[: packed >> 24].decode() == decode_text(
                charset, bytes([byte])
            )
    assert utf8_table(charset).dtype == np.uint32


def test_eucjpms_and_big5_are_read_character_by_character_where_python_errs() -> None:
    assert decode_text("eucjpms", b"a\xad\xa1\x8f\xa2\xb7\x8e\xb1~\xa4\xa2\xf5\xa1") == "a①～ｱ~あ\ue000"
    assert decode_text("ujis", b"\x8f\xf5\xa1\x5c") == "\ue3ac\\"
    assert decode_text("big5", b"\xf9\xd6\xa4\xa4A") == "碁中A"
    with pytest.raises(UnsupportedValue, match="are not valid big5"):
        decode_text("big5", b"ab\xf9\xfe")
    with pytest.raises(UnsupportedValue, match="are not valid ucs2"):
        decode_text("ucs2", b"\xd8\x3d\xde\x00")
