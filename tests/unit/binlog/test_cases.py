"""One list of cases (cases.py), three decoders, two servers.

In:  CASES.
Out: kernel, slow twin and mysql-replication (where it is right) give each case's value from its bytes; and a real
     server that is given the literal writes just these bytes, under just this TABLE_MAP.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pytest

from tests.kit.decoding import ALL_TIME, DECODERS, changed_rows, current_binlog
from tests.support.seeds import share
from tests.support.servers import FreshDatabase
from tests.support.third_opinion import as_it_shows, its_value, rows_of
from tests.unit.binlog.cases import CASES, Case
from tests.unit.binlog.encoding import events as e
from tests.unit.binlog.logs import WRITE, Dress, Table, rows_event, segment_of, transaction
from tidegate.binlog.format.events import EventType
from tidegate.local.server import Server
from tidegate.schema.model.types import canonical


def dress_of(case: Case) -> Dress:
    return Dress(metadata="FULL", mysql=case.only not in ("mariadb", "old"))


def log_of(case: Case) -> tuple[Table, list[bytes]]:
    table, dress = Table("t", (case.wire_type,)), dress_of(case)
    events = [table.map_event(5, dress), rows_event(WRITE, 5, 1, e.image(case.wire), dress, end=True)]
    return table, transaction(1, events, dress)


@pytest.mark.parametrize("decode", DECODERS, ids=["kernel", "twin"])
@pytest.mark.parametrize("case", share(CASES), ids=lambda case: case.name)
def test_a_case_has_its_value(case: Case, decode: Any) -> None:
    table, events = log_of(case)
    found = decode(segment_of(events, dress_of(case)), {("shop", "t"): [table.version]}, {("shop", "t"): ALL_TIME})
    assert found.problems == ()
    assert [row["c0"] for row in changed_rows(found)] == [case.value]


@pytest.mark.parametrize("case", share([case for case in CASES if not case.third]), ids=lambda case: case.name)
def test_mysql_replication_says_the_same(case: Case) -> None:
    table, events = log_of(case)
    ((name, row),) = rows_of(events, flavour="mysql" if dress_of(case).mysql else "mariadb")
    kind = canonical(table.version.columns[0]).kind
    assert (name, its_value(kind, row["values"]["c0"])) == ("t", as_it_shows(kind, case.type, case.value))


def refused(case: Case) -> str:
    """What mysql-replication makes of a case that is left out: its value, or its error."""
    table, events = log_of(case)
    kind = canonical(table.version.columns[0]).kind
    try:
        ((_, row),) = rows_of(events, flavour="mysql" if dress_of(case).mysql else "mariadb")
        value = its_value(kind, row["values"]["c0"])
    except Exception as error:  # noqa: BLE001 - its errors are of every kind
        return type(error).__name__
    return "right" if value == as_it_shows(kind, case.type, case.value) else repr(value)


@pytest.mark.parametrize("case", [case for case in CASES if case.third], ids=lambda case: case.name)
def test_mysql_replication_is_still_wrong_where_it_is_left_out(case: Case) -> None:
    assert refused(case) != "right", f"mysql-replication reads it now: take the reason away ({case.third})"


# --- a real server writes each literal -------------------------------------------------------------------------------


def events_of(content: bytes) -> Iterator[tuple[int, bytes]]:
    """(type, body without checksum) of each event of a binlog file."""
    at = 4
    while at < len(content):
        _, kind, _, size, _, _ = struct.unpack_from("<IBIIIH", content, at)
        yield kind, content[at + 19 : at + size - 4]
        at += size


def written(server: Server, database: str, cases: list[Case], *, old: bool) -> tuple[bytes, bytes]:
    """TABLE_MAP body and row image of one row with every case, as the server logs it."""
    server.query("FLUSH BINARY LOGS")
    path = current_binlog(server)
    charset = {case.charset: f" CHARACTER SET {case.charset}" for case in cases if case.charset}
    columns = ", ".join(f"c{i} {case.type}{charset.get(case.charset, '')} NULL" for i, case in enumerate(cases))
    if old:
        server.query("SET GLOBAL mysql56_temporal_format = OFF")
    with server.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = '', time_zone = '+00:00'")
        cursor.execute(f"CREATE TABLE t ({columns})")
        cursor.execute(f"INSERT INTO t VALUES ({', '.join(case.literal for case in cases)})")
    if old:
        server.query("SET GLOBAL mysql56_temporal_format = ON")
    found = dict(events_of(path.read_bytes()))
    rows = found.get(EventType.WRITE_ROWS_V2) or found[EventType.WRITE_ROWS_V1]
    head = 8 + (2 if EventType.WRITE_ROWS_V2 in found else 0) + len(e.packed(len(cases))) + (len(cases) + 7) // 8
    return found[EventType.TABLE_MAP], rows[head:]


def check_against(server: Server, database: str, cases: list[Case], *, old: bool = False) -> None:
    mapped, image = written(server, database, cases, old=old)
    types = [case.wire_type for case in cases]
    metadata = b"".join(wire.metadata for wire in types)
    shape = e.packed(len(types)) + bytes(wire.code for wire in types) + e.packed(len(metadata)) + metadata
    assert mapped.find(shape) > 0
    at = (len(cases) + 7) // 8
    assert int.from_bytes(image[:at], "little") & ((1 << len(cases)) - 1) == 0  # bits without a column may be set
    for case in cases:
        assert image[at : at + len(case.wire)].hex() == case.wire.hex(), case.name
        at += len(case.wire)
    assert at == len(image)


@pytest.mark.server
@pytest.mark.parametrize("part", range(3))
def test_a_server_writes_each_literal_in_just_these_bytes(
    any_server: Server, fresh_database: FreshDatabase, part: int
) -> None:
    cases = [case for case in CASES if case.only in ("", any_server.flavour.replace("mysql", "mysql9"))][part::3]
    check_against(any_server, fresh_database(any_server), cases)


@pytest.mark.server
def test_mariadb_writes_the_old_temporal_formats_in_just_these_bytes(
    mariadb: Server, fresh_database: FreshDatabase
) -> None:
    check_against(mariadb, fresh_database(mariadb), [case for case in CASES if case.only == "old"], old=True)
