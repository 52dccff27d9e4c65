"""Random rows of every common type, written to real servers: what the log gives is what SELECT gives.

The oracle is the server: after inserts, updates, key changes and deletes, the net of the decoded changes must equal
SELECT, value by value in the canonical types; kernel and reference decoder must agree on every change.
"""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import Any

import pytest

from tests.support.servers import FreshDatabase
from tests.unit.binlog.support import ALL_TIME, changed_rows, current_binlog, decode_both, segment_of_file, version_on
from tidegate.binlog.charsets import decode_text
from tidegate.demo.server import Server
from tidegate.errors import UnsupportedValue
from tidegate.tables import OP, OP_DELETE

pytestmark = pytest.mark.server

INTEGERS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}


def integer_columns() -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, bits in INTEGERS.items():
        half = 1 << (bits - 1)
        made[f"{name}"] = lambda r, half=half: r.choice([-half, half - 1, 0, -1, r.randrange(-half, half)])
        made[f"{name} unsigned"] = lambda r, half=half: r.choice([0, 2 * half - 1, half, r.randrange(2 * half)])
    return made


def decimal_of(r: random.Random, digits: int, scale: int) -> str:
    value = r.choice([0, 1, 10**digits - 1, r.randrange(10**digits), r.randrange(10 ** r.randrange(1, digits + 1))])
    text = f"{value:0{scale + 1}d}"
    sign = "-" if r.random() < 0.5 and value else ""
    return sign + (f"{text[:-scale]}.{text[-scale:]}" if scale else text)


def seconds_text(r: random.Random, decimals: int) -> str:
    return f".{r.randrange(10**decimals):0{decimals}d}" if decimals else ""


def datetime_of(r: random.Random, decimals: int) -> str:
    day = dt.date(1000, 1, 1) + dt.timedelta(days=r.randrange(0, 3287181))
    return f"{day} {r.randrange(24):02d}:{r.randrange(60):02d}:{r.randrange(60):02d}{seconds_text(r, decimals)}"


def time_of(r: random.Random, decimals: int) -> str:
    sign, hours = r.choice(["", "-"]), r.choice([0, 1, 99, 100, 837, r.randrange(838)])
    return f"{sign}{hours:02d}:{r.randrange(60):02d}:{r.randrange(60):02d}{seconds_text(r, decimals)}"


def timestamp_of(r: random.Random, decimals: int) -> str:
    moment = dt.datetime(1970, 1, 2, tzinfo=dt.UTC) + dt.timedelta(seconds=r.randrange(2**31 - 100000))
    return moment.strftime("%Y-%m-%d %H:%M:%S") + seconds_text(r, decimals)


def text_of(r: random.Random, alphabet: str, longest: int) -> str:
    return "".join(r.choice(alphabet) for _ in range(r.choice([0, 1, longest, r.randrange(longest + 1)])))


def bytes_of(r: random.Random, longest: int) -> bytes:
    size = r.choice([0, 1, longest, r.randrange(longest + 1)])
    return r.choice([r.randbytes(size), bytes(size), r.randbytes(size // 2) + bytes(size - size // 2)])


WIDE = "aZ'\"\\\n\t\x00é€中𝄞 "


def column_types() -> dict[str, Any]:
    made = integer_columns()
    made |= {f"decimal({p},{s})": (lambda r, p=p, s=s: decimal_of(r, p, s)) for p, s in DECIMALS}
    made |= {
        "float": lambda r: r.choice([0.0, -1.5, 3.25e10, r.randrange(1 << 20) / 64]),
        "double": lambda r: r.choice([0.0, -0.1, 1.7e308, 5e-324, r.random(), r.uniform(-1e9, 1e9)]),
        "date": lambda r: datetime_of(r, 0)[:10],
        "year": lambda r: r.choice([0, 1901, 2155, r.randrange(1901, 2156)]),
    }
    for n in range(7):
        made[f"datetime({n})"] = lambda r, n=n: datetime_of(r, n)
        made[f"timestamp({n}) null"] = lambda r, n=n: timestamp_of(r, n)
        made[f"time({n})"] = lambda r, n=n: time_of(r, n)
    made |= {
        "char(10)": lambda r: text_of(r, WIDE, 10).rstrip(" "),
        "char(255)": lambda r: text_of(r, "ab中", 255),
        "varchar(20) character set latin1": lambda r: text_of(r, "aé€ß\x81", 20),
        "varchar(300)": lambda r: text_of(r, WIDE, 300),
        "varchar(20) character set utf16": lambda r: text_of(r, "a中𝄞", 20),
        "varchar(20) character set gbk": lambda r: text_of(r, "a中文", 20),
        "tinytext": lambda r: text_of(r, WIDE, 50),
        "text": lambda r: text_of(r, WIDE, 500),
        "mediumtext": lambda r: text_of(r, WIDE, 500),
        "longtext": lambda r: text_of(r, WIDE, 500),
        "binary(16)": lambda r: bytes_of(r, 16),
        "binary(255)": lambda r: bytes_of(r, 255),
        "varbinary(300)": lambda r: bytes_of(r, 300),
        "tinyblob": lambda r: bytes_of(r, 200),
        "blob": lambda r: bytes_of(r, 300),
        "longblob": lambda r: bytes_of(r, 300),
        "enum('a','b','c''d','é')": lambda r: r.choice(["a", "b", "c'd", "é"]),
        "set('x','y','z')": lambda r: ",".join(m for m in "xyz" if r.random() < 0.5),
        "bit(1)": lambda r: r.randrange(2),
        "bit(9)": lambda r: r.randrange(512),
        "bit(64)": lambda r: r.randrange(1 << 64),
    }
    return made


DECIMALS = ((1, 0), (1, 1), (5, 2), (9, 0), (9, 9), (10, 0), (12, 2), (18, 4), (18, 18))
DECIMALS += ((19, 0), (20, 10), (38, 30), (38, 0), (39, 0), (65, 30), (65, 0))
TYPES = column_types()


def expected(kind: str, value: Any) -> Any:
    """A value as SELECT gives it, as its canonical type has it."""
    if value is None:
        return None
    if kind.startswith(("time(", "decimal(39", "decimal(65")):
        return value  # asked for as text
    if kind.startswith("timestamp"):
        return value.replace(tzinfo=dt.UTC)
    if kind == "bit(1)":
        return value == b"\x01"
    if kind == "bigint unsigned":
        return Decimal(value)
    return value


def selected(server: Server, database: str, kinds: list[str]) -> dict[int, tuple[Any, ...]]:
    names = []
    for i, kind in enumerate(kinds):
        as_text = kind.startswith(("time(", "decimal(39", "decimal(65"))
        # a FLOAT is printed with 6 digits, which aren't all of its value
        names.append(f"CAST(c{i} AS CHAR)" if as_text else f"c{i} + 0e0" if kind == "float" else f"c{i}")
    found = {}
    with server.connect(database).cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute(f"SELECT id, {', '.join(names)} FROM t")
        for row in cursor.fetchall():
            found[row[0]] = tuple(expected(kind, value) for kind, value in zip(kinds, row[1:], strict=True))
    return found


def play(server: Server, database: str, kinds: list[str], r: random.Random) -> None:
    """Inserts, updates, key changes and deletes with values drawn at random."""
    columns = ", ".join(f"c{i} {kind}" for i, kind in enumerate(kinds))
    with server.connect(database).cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00', sql_mode = 'STRICT_TRANS_TABLES'")
        cursor.execute(f"CREATE TABLE t (id INT PRIMARY KEY, {columns})")
        marks = ", ".join(["%s"] * (len(kinds) + 1))
        for key in range(40):
            row = [None if r.random() < 0.1 else TYPES[kind](r) for kind in kinds]
            cursor.execute(f"INSERT INTO t VALUES ({marks})", [key, *row])
        for key in range(0, 40, 3):
            i = r.randrange(len(kinds))
            cursor.execute(f"UPDATE t SET c{i} = %s WHERE id = %s", [TYPES[kinds[i]](r), key])
        cursor.execute("UPDATE t SET id = id + 1000 WHERE id % 5 = 0")
        cursor.execute("DELETE FROM t WHERE id % 7 = 0")


@pytest.mark.parametrize("part", range(6))
def test_decoded_changes_net_to_what_the_server_selects(
    any_server: Server, fresh_database: FreshDatabase, part: int
) -> None:
    database = fresh_database(any_server)
    kinds = list(TYPES)[part::6]
    any_server.query("FLUSH BINARY LOGS")
    path = current_binlog(any_server)
    play(any_server, database, kinds, random.Random(part))
    made = segment_of_file(path.read_bytes())
    name = (database, "t")
    decoded = decode_both(made, {name: [version_on(any_server, database, "t")]}, {name: ALL_TIME})
    assert decoded.problems == ()
    state: dict[int, tuple[Any, ...]] = {}
    for row in changed_rows(decoded):
        values = tuple(row[f"c{i}"] for i in range(len(kinds)))
        if row[OP] == OP_DELETE:
            del state[row["id"]]
        else:
            state[row["id"]] = values
    truth = selected(any_server, database, kinds)
    assert state.keys() == truth.keys()
    for key, values in truth.items():
        for kind, ours, theirs in zip(kinds, state[key], values, strict=True):
            assert ours == theirs, f"{kind} of row {key}"


def test_mariadb_uuid_and_inet_are_the_text_that_select_shows(mariadb: Server, fresh_database: FreshDatabase) -> None:
    database = fresh_database(mariadb)
    mariadb.query("FLUSH BINARY LOGS")
    path = current_binlog(mariadb)
    r = random.Random(1)
    with mariadb.connect(database).cursor() as cursor:
        cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, u UUID, a INET6, b INET4)")
        for key in range(60):
            address = r.choice([r.randbytes(16), bytes(12) + r.randbytes(4), bytes(10) + b"\xff\xff" + r.randbytes(4)])
            values = [key, r.randbytes(16), r.choice([address, bytes(14) + b"\x10\x00", bytes(16)]), r.randbytes(4)]
            cursor.execute("INSERT INTO t VALUES (%s, %s, %s, %s)", values)
        cursor.execute("INSERT INTO t VALUES (99, UUID(), '::', '0.0.0.0')")
        cursor.execute("SELECT id, CAST(u AS CHAR), CAST(a AS CHAR), CAST(b AS CHAR) FROM t")
        truth = list(cursor.fetchall())
    name = (database, "t")
    decoded = decode_both(
        segment_of_file(path.read_bytes()), {name: [version_on(mariadb, database, "t")]}, {name: ALL_TIME}
    )
    assert [(row["id"], row["u"], row["a"], row["b"]) for row in changed_rows(decoded)] == truth


def test_json_is_the_servers_own_text(mysql9: Server, fresh_database: FreshDatabase) -> None:
    database = fresh_database(mysql9)
    mysql9.query("FLUSH BINARY LOGS")
    path = current_binlog(mysql9)
    r = random.Random(2)
    numbers = [10.0**e * m for e in range(-30, 31) for m in (1, 1.5, -7.25, 0.1, 1 / 3)]
    numbers += [r.uniform(-1, 1) * 10 ** r.uniform(-320, 300) for _ in range(300)]
    with mysql9.connect(database).cursor() as cursor:
        cursor.execute("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, j JSON)")
        for number in numbers:
            cursor.execute("INSERT INTO t (j) VALUES (CAST(%s AS JSON))", [repr(number)])
        for text in JSON_TEXTS:
            cursor.execute("INSERT INTO t (j) VALUES (%s)", [text])
        for expression in JSON_EXPRESSIONS:
            cursor.execute(f"INSERT INTO t (j) VALUES ({expression})")
        cursor.execute("SELECT id, j FROM t")
        truth = dict(cursor.fetchall())
    name = (database, "t")
    made = segment_of_file(path.read_bytes())
    decoded = decode_both(made, {name: [version_on(mysql9, database, "t")]}, {name: ALL_TIME})
    assert {row["id"]: row["j"] for row in changed_rows(decoded)} == truth


JSON_TEXTS = [
    "null", "true", "false", "0", "-1", "32767", "65536", "-2147483649", "9223372036854775807", "18446744073709551615",
    '""', '"é中𝄞"', r'"\" \\ \/ \b \f \n \r \t \u0001 \u001f \u007f"', "[]", "{}", '[1, "a", null, {"b": [true]}]',
    '{"zz": 1, "a": 2, "b": {"": []}, "\\n": 3}', "[" + ",".join(str(n) for n in range(0, 70000, 7)) + "]",
    '{"' + "k" * 300 + '": "' + "v" * 70000 + '"}', "[" * 99 + "]" * 99,
]  # fmt: skip
JSON_EXPRESSIONS = [
    "JSON_ARRAY(CAST(1.230 AS DECIMAL(10,3)), CAST(-0.5 AS DECIMAL(3,2)), CAST(0 AS DECIMAL(65,30)))",
    "JSON_ARRAY(CAST('2024-02-29' AS DATE), CAST('2024-02-29 12:34:56.789' AS DATETIME(3)))",
    "JSON_ARRAY(CAST('-12:34:56.5' AS TIME(1)), CAST('838:59:59' AS TIME))",
    "JSON_ARRAY(b'101', x'00ff', CAST('abc' AS BINARY))",
    "JSON_ARRAY(CAST(2024 AS YEAR), TIMESTAMP '2024-01-01 00:00:00')",
    "JSON_OBJECT('g', ST_GeomFromText('POINT(1 2)'))",
]


SINGLE_BYTE = ["latin1", "latin2", "latin5", "latin7", "cp1250", "cp1251", "cp1257", "cp850", "cp852", "cp866"]
SINGLE_BYTE += ["greek", "hebrew", "hp8", "koi8r", "koi8u", "macce", "macroman", "tis620", "ascii"]
SEVERAL_BYTES = ["gbk", "gb2312", "big5", "sjis", "cp932", "ujis", "eucjpms", "euckr", "ucs2", "utf16le"]


@pytest.mark.parametrize("charset", SINGLE_BYTE + SEVERAL_BYTES)
def test_every_character_of_a_charset_is_what_the_server_converts_it_to(any_server: Server, charset: str) -> None:
    values = [bytes([b]) for b in range(256)]
    if charset in SEVERAL_BYTES:
        # no halves of UTF-16 pairs, which aren't characters
        last = 0xD7 if charset in {"ucs2", "utf16le"} else 0xFF
        values = [bytes([a, b]) for a in range(0x81, last, 2) for b in range(0x40, last, 3)]
    listed = " UNION ALL SELECT ".join(f"x'{value.hex()}'" for value in values)
    query = (
        f"SELECT HEX(b), CONVERT(CONVERT(b USING {charset}) USING utf8mb4), HEX(CONVERT(b USING {charset}))"
        f" FROM (SELECT NULL AS b UNION ALL SELECT {listed}) v WHERE b IS NOT NULL"
    )
    compared = 0
    for raw, text, kept in any_server.query(query):
        if kept != raw or text is None or text in {"?", "\ufffd", ""}:
            continue  # bytes that the server itself can't read
        try:
            assert decode_text(charset, bytes.fromhex(raw)) == text
        except UnsupportedValue:
            continue  # held with a clear error is right, another character is not
        compared += 1
    assert compared > len(values) / 5
