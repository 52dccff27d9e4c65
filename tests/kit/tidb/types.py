"""Tables of a TiDB with every type and kind of key, and rows with extreme values, as a real one was recorded with.

In:  a cursor, a database.
Out: the tables; their names.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

_GOLDEN: Final = Path(__file__).resolve().parents[2] / "golden" / "tidb"
# Case -> tables whose definition and rows are taken as they were.
_RECORDED: Final = {
    "p01_types": ("num", "num_nc", "tmp", "tmp_nc", "str", "str_nc"),
    "p02_dml": ("ccomp", "cbytes", "ctime", "cpre", "cstr", "ubig", "onlypk", "onlycpk", "nopk"),
    "p07_charset": ("cs", "gpk", "gpkb", "uci", "u0900"),
}
_JSON: Final = (
    '{"b": 1, "a": [1.0, "x", null, true], "é": {"": "\\\\"}}', "18446744073709551615", "-1.5e300", '"text"', "null",
)  # fmt: skip
_PLUS: Final = (
    "CREATE TABLE js (id INT PRIMARY KEY, j JSON)",
    "CREATE TABLE made (id INT PRIMARY KEY, a INT, v INT AS (a * 2) VIRTUAL, s INT AS (a * 3) STORED)",
    "CREATE TABLE parted (id INT PRIMARY KEY, v VARCHAR(9)) PARTITION BY HASH (id) PARTITIONS 3",
    "CREATE TABLE bare (a INT, b DOUBLE)",
    "CREATE TABLE `Odd ``name` (`a b` VARCHAR(9), `q``` INT, UNIQUE KEY (`a b`), PRIMARY KEY (`q```) NONCLUSTERED)",
    "CREATE TABLE empty_one (id INT PRIMARY KEY)",
)


def make_tables(cursor: Any, database: str) -> list[str]:
    """In a database of this name, which becomes the session's own."""
    cursor.execute(f"CREATE DATABASE `{database}`")
    cursor.execute(f"USE `{database}`")
    cursor.execute("SET SESSION sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00'")
    made: list[str] = []
    for case, names in _RECORDED.items():
        lines = (_GOLDEN / case / "ddl_jobs.jsonl").read_text().splitlines()
        for query in (str(json.loads(line)["query"]) for line in lines):
            words = query.split("(", 1)[0].replace("`", "").split()
            if words[:2] == ["CREATE", "TABLE"] and words[2] in names:
                cursor.execute(query)
                made.append(words[2])
    for query in _PLUS:
        cursor.execute(query)
    return [*made, "js", "made", "parted", "bare", "Odd `name", "empty_one"]


def fill(cursor: Any) -> None:
    """Rows, in the session's database."""
    for case, names in _RECORDED.items():
        for name in names:
            recorded = next((_GOLDEN / case / "tables").glob(f"*_db.{name}.json"))
            _insert(cursor, name, json.loads(recorded.read_text()))
    for number, text in enumerate(_JSON):
        cursor.execute("INSERT INTO js VALUES (%s, %s)", (number, text))
    cursor.execute(
        "INSERT INTO js VALUES (98, JSON_OBJECT('d', CAST('2024-02-29 01:02:03.5' AS DATETIME(6)))), (99, NULL)"
    )
    cursor.execute("INSERT INTO made (id, a) VALUES (1, 1), (2, NULL)")
    cursor.execute(f"INSERT INTO parted VALUES {', '.join(f'({n}, {n})' for n in range(20))}")
    cursor.execute("INSERT INTO bare VALUES (1, 0.5), (1, 0.5), (NULL, NULL), (2, -0e0)")
    cursor.execute("INSERT INTO `Odd ``name` VALUES ('x', 1), (NULL, 2), ('y,\n', 3)")


def _insert(cursor: Any, name: str, recorded: dict[str, Any]) -> None:
    shown = [
        (at, column)
        for at, column in enumerate(recorded["columns"])
        if not column.get("hidden") and not column["generation_expression"]
    ]
    listed = ", ".join(f"`{column['name']}`" for _, column in shown)
    for row in recorded["rows"]:
        values = ", ".join(_literal(cursor, column, row[at]) for at, column in shown)
        cursor.execute(f"INSERT INTO `{name}` ({listed}) VALUES ({values})")


def _literal(cursor: Any, column: dict[str, Any], text: str | None) -> str:
    if text is None:
        return "NULL"
    if column["data_type"] == "bit" or column["enc"] != "text":
        return f"x'{text.zfill(len(text) + len(text) % 2)}'"
    return str(int(text)) if column["data_type"] == "year" else str(cursor.connection.escape(text))
