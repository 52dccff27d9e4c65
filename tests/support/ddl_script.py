"""DDL run as a script of its own, and the columns of the tables that it leaves."""

from __future__ import annotations

from tidegate.ddl_script.script import Script, ScriptStep
from tidegate.ddl_script.shown_columns import shown_columns
from tidegate.schema.model.server import ServerVersion

MARIADB = "11.4.5-MariaDB"
MYSQL = "9.7.4"


def run(*sql: str, version: str = MARIADB) -> tuple[Script, list[ScriptStep]]:
    script = Script("test", version, "utf8mb4")
    return script, [script.run(line, text) for line, text in enumerate(sql)]


def columns_of(script: Script, table: str = "t") -> dict[str, dict[str, object]]:
    version = script.tables()[f"test.{table}"]
    return {column["name"]: column for column in shown_columns(version, ServerVersion.of(script.server_version))}


def types_of(script: Script, table: str = "t") -> dict[str, object]:
    return {name: column["type"] for name, column in columns_of(script, table).items()}
