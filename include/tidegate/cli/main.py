"""`tidegate`: mounts the commands, and turns errors into one line and an exit code.

In:  argv.
Out: 0 done, 1 found a difference or stopped by an error, 2 called or configured wrongly.

A command's module is imported when that command runs: `tidegate --help` must not wait for pyarrow and numba.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any, Final

import typer
import typer.core

from tidegate.errors import ConfigError, TidegateError, UsageError

EXIT_ERROR: Final = 1
EXIT_USAGE: Final = 2
EXIT_INTERRUPTED: Final = 130

# name -> (module, function, one line for --help)
COMMANDS: Final[dict[str, tuple[str, str, str]]] = {
    "demo": ("tidegate.cli.demo", "demo", "A MariaDB shop, kept equal in Delta by Airflow and Spark."),
    "up": ("tidegate.cli.up", "up", "Start Airflow on this computer for a pipeline."),
    "capture": ("tidegate.cli.capture", "capture", "Capture a source's binlog into bronze."),
    "apply": ("tidegate.cli.apply", "apply", "Apply bronze to silver, by spark-submit."),
    "maintain": (
        "tidegate.cli.maintain",
        "maintain",
        "Keep silver and bronze small and quick to read.",
    ),
    "rebuild": ("tidegate.cli.rebuild", "rebuild", "Rebuild a silver table from bronze alone, as a new table."),
    "status": ("tidegate.cli.status", "status", "How far a pipeline's sources and tables are."),
    "latency": ("tidegate.cli.latency", "latency", "How soon a commit at the source is visible in silver."),
    "release": ("tidegate.cli.release", "release", "Let a held table go on, once its cause is mended."),
    "schema": ("tidegate.cli.schema", "schema", "A table's versions; its columns asked of the server again."),
    "verify": ("tidegate.cli.verify", "verify", "Compare silver with the source's own SELECT."),
    "decode": ("tidegate.cli.decode", "decode", "Binlog files as NDJSON, one line per row change."),
    "vlog": ("tidegate.cli.vlog", "app", "A value log's files: listed, checked, shown."),
    "ddl": ("tidegate.cli.ddl", "ddl", "Replay a DDL script; print the tables as JSON."),
}


class Commands(typer.core.TyperGroup):
    """Lists all commands without importing any, and imports the one that runs."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the signature is typer's
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        return typer.core.TyperCommand(cmd_name, help=COMMANDS[cmd_name][2])

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        return name, load(name) if name in COMMANDS else command, rest


def load(name: str) -> Any:
    """The command as typer runs it."""
    module, function, _ = COMMANDS[name]
    found = getattr(importlib.import_module(module), function)
    if not isinstance(found, typer.Typer):
        single = typer.Typer(add_completion=False)
        single.command(name)(found)
        found = single
    return typer.main.get_command(found)


app = typer.Typer(
    cls=Commands,
    help="Keeps Delta Lake tables equal to MySQL and MariaDB tables, from their binlogs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def _root() -> None:
    """Keeps Delta Lake tables equal to MySQL and MariaDB tables, from their binlogs."""


def run(arguments: list[str] | None = None) -> None:
    """Entry of the console script; exits."""
    try:
        app(args=arguments)
    except TidegateError as error:
        print(f"tidegate: {error}", file=sys.stderr)
        sys.exit(EXIT_USAGE if isinstance(error, UsageError | ConfigError) else EXIT_ERROR)
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)


def pipeline_path(name: str, root: Path) -> Path:
    """A pipeline file given as a path, or by its name under include/pipelines. Raises UsageError."""
    given = Path(name)
    if given.suffix in (".yaml", ".yml") or given.exists():
        return given
    path = root / "include" / "pipelines" / f"{name}.yaml"
    if not path.exists():
        known = ", ".join(sorted(file.stem for file in path.parent.glob("*.yaml")))
        raise UsageError(f"no pipeline {name!r}", where=str(path.parent), remedy=f"known: {known}; or give a file")
    return path
