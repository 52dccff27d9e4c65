"""Members of ENUM and SET in the character set of their column, as information_schema shows them after each statement.

In:  a real server; statements that give members characters which their column's set lacks, and CONVERT TO.
Out: schema_history has the members that the server has.
"""

from __future__ import annotations

import pytest

from tests.integration.schema.test_events import replayed
from tests.support.servers import FreshDatabase
from tidegate.local.server import Server
from tidegate.schema.model.columns import VersionStatus
from tidegate.schema.model.types import UNKNOWN

pytestmark = pytest.mark.server

WIDE = "ENUM('a', 'é', '日', 'x😀')"
SETS = ("ascii", "latin1", "latin2", "cp1250", "cp1251", "sjis", "gbk", "ucs2", "utf16", "utf8mb3", "utf8mb4")
WRITTEN = (
    *(f"CREATE TABLE c_{name} (e {WIDE} CHARACTER SET {name}, s SET('é', 'z ') CHARACTER SET {name})" for name in SETS),
    "CREATE TABLE hex (e ENUM('a', 0xE9, x'62', 0b1100011, b'01100100') CHARACTER SET latin1)",
    "CREATE TABLE of_table (e ENUM('日', 'b')) CHARACTER SET latin1",
    "CREATE TABLE added (id INT)",
    "ALTER TABLE added ADD e ENUM('日', 'b') CHARACTER SET latin1, ADD s SET('日', 'x') CHARACTER SET ascii",
    "CREATE TABLE changed (e ENUM('日', 'é') CHARACTER SET utf8mb4)",
    "ALTER TABLE changed MODIFY e ENUM('日', 'é') CHARACTER SET latin1",
    "CREATE TABLE alike LIKE of_table",
    "CREATE TABLE taken AS SELECT e FROM of_table",
    "CREATE TABLE twice (e ENUM('日', '本') CHARACTER SET latin1)",
    "CREATE TABLE to_default (e ENUM('a', 'é') CHARACTER SET utf8mb4 DEFAULT _latin1 0xE9)",
)
# The old set, the new one, a member beyond ASCII that both have.
CONVERTED = (
    ("utf8mb4", "latin1", "é"),
    ("utf8mb4", "utf16", "日本"),
    ("utf8mb3", "utf8mb4", "日"),
    ("utf8mb4", "utf8mb3", "é"),
    ("latin1", "latin2", "é"),
    ("latin1", "cp1251", "é"),
    ("cp1250", "cp1251", "é"),
    ("ucs2", "utf16", "é"),
    ("utf16", "latin1", "é"),
    ("gbk", "latin1", "日"),
    ("latin1", "utf8mb4", "é"),
    ("latin1", "ascii", "é"),
    ("sjis", "utf8mb4", "日"),
    ("latin1", "binary", "é"),
)
MIXED = (
    "CREATE TABLE mixed (e ENUM('日'), m ENUM('日'), c ENUM('日')) CHARACTER SET utf8mb4",
    (
        "ALTER TABLE mixed CONVERT TO CHARACTER SET latin1, MODIFY m ENUM('日') CHARACTER SET utf8mb4,"
        " CHANGE c d ENUM('日'), ADD a ENUM('日') CHARACTER SET utf8mb4, ADD b ENUM('日')"
    ),
)


def _compared(server: Server, database: str, statements: list[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Types of ENUM and SET columns in schema_history, and in the server."""
    history = replayed(server, statements, database)
    last = [history.versions(*name)[-1] for name in history.tables()]
    assert {version.status for version in last} == {VersionStatus.ACTIVE}, history.held
    ours = {
        f"{version.table}.{column.name}": column.type
        for version in last
        for column in version.columns
        if column.type.startswith(("enum(", "set("))
    }
    shown = server.query(
        "SELECT CONCAT(table_name, '.', column_name), column_type FROM information_schema.columns"
        f" WHERE table_schema = '{database}' AND data_type IN ('enum', 'set')"
    )
    return ours, {str(name): str(kind) for name, kind in shown}


@pytest.mark.parametrize("mode", ["", "STRICT_TRANS_TABLES"])
def test_a_character_that_the_columns_set_lacks_is_a_question_mark(
    any_server: Server, fresh_database: FreshDatabase, mode: str
) -> None:
    database = fresh_database(any_server)
    refused = ("twice", "c_sjis", "c_ascii", "c_latin1", "c_latin2", "c_cp1250", "c_cp1251", "c_gbk")
    statements = [sql for sql in WRITTEN if not mode or sql.split()[2] not in refused]
    ours, shown = _compared(any_server, database, [f"SET sql_mode = '{mode}'", *statements])
    # It shows members in three bytes a character.
    ours = {
        name: kind if "utf8mb4" not in name and "utf16" not in name else _shown(kind) for name, kind in ours.items()
    }
    assert ours == shown
    assert ours["of_table.e"] == ours["taken.e"] == "enum('?','b')"
    assert ours["hex.e"] == "enum('a','é','b','c','d')"


def _shown(kind: str) -> str:
    return "".join("?" if character > "\uffff" else character for character in kind)


def test_convert_to_takes_the_bytes_of_members_for_text_of_the_new_set(
    any_server: Server, fresh_database: FreshDatabase
) -> None:
    database = fresh_database(any_server)
    statements = ["SET sql_mode = ''", *MIXED]
    for old, new, member in CONVERTED:
        name = f"{old}_{new}"
        statements += [
            f"CREATE TABLE {name} (e ENUM('a', '{member}') CHARACTER SET {old}, i INT)",
            f"ALTER TABLE {name} CONVERT TO CHARACTER SET {new}",
        ]
    ours, shown = _compared(any_server, database, statements)
    no_text = {name for name, kind in ours.items() if UNKNOWN in kind}
    assert no_text == {f"{name}.e" for name in ("utf8mb4_utf16", "latin1_utf8mb4", "latin1_ascii", "sjis_utf8mb4",
                                                "latin1_binary")}  # fmt: skip
    assert {name: kind for name, kind in ours.items() if name not in no_text} == {
        name: kind for name, kind in shown.items() if name not in no_text
    }
    assert ours["utf8mb4_latin1.e"] == "enum('a','Ã©')"
    assert ours["mixed.e"] == "enum('æ—¥')"
    assert [ours[f"mixed.{name}"] for name in ("m", "d", "a", "b")] == ["enum('?')"] * 4
