"""`tidegate`: mounts the commands, and turns errors into one line on stderr and an exit code.

In:  argv.
Out: 0 done; 1 found something (a difference, a held table, a fault), or an error for a person; 2 called or configured
     wrongly; 75 a cause that may be gone the next time; 130 Ctrl-C.

A command's module is imported only when the command runs: `tidegate --help` must not wait for pyarrow and numba.
"""

from __future__ import annotations

import difflib
import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import typer
import typer.core

from tidegate import log_lines
from tidegate.errors import (
    ConfigError,
    HostRefused,
    LakeUnavailable,
    SourceUnavailable,
    TidegateError,
    Transient,
    UsageError,
)
from tidegate.home import EXIT_ERROR, EXIT_INTERRUPTED, EXIT_TRANSIENT, EXIT_USAGE, LOG_ENV, TRACEBACK_ENV, home
from tidegate.limits import MESSAGE_CHARACTERS_MAX
from tidegate.remedy import ISSUES

# name -> (module, function, one line for --help)
COMMANDS: Final[dict[str, tuple[str, str, str]]] = {
    "demo": ("tidegate.cli.demo", "demo", "Run a MariaDB shop; Airflow and Spark keep it equal in Delta."),
    "init": ("tidegate.cli.init", "init", "Ask for a server and its tables; write the pipeline file."),
    "connection": ("tidegate.cli.init", "connection", "Ask for a server, try it, print its connection as JSON."),
    "up": ("tidegate.cli.up", "up", "Start Airflow on this computer for a pipeline."),
    "capture": ("tidegate.cli.capture", "capture", "Capture a source's binlog into bronze."),
    "pump": ("tidegate.cli.pump", "pump", "Serve as a Pump: TiDB up to 8.3 writes its binlog to it."),
    "apply": ("tidegate.cli.apply", "apply", "Apply bronze to silver, by spark-submit."),
    "maintain": (
        "tidegate.cli.maintain",
        "maintain",
        "Keep silver and bronze small and quick to read.",
    ),
    "erase": ("tidegate.cli.erase", "erase", "Erase a person's rows from the whole lake, at once."),
    "rebuild": ("tidegate.cli.rebuild", "rebuild", "Rebuild a silver table from bronze alone."),
    "check": (
        "tidegate.cli.check",
        "check",
        "Check whether a pipeline can run: settings, grants, clock, tables, lake.",
    ),
    "status": ("tidegate.cli.status", "status", "Show the lag of a pipeline, and the tables that wait."),
    "top": ("tidegate.cli.top", "top", "Watch a pipeline live, in the terminal."),
    "metrics": ("tidegate.cli.metrics", "metrics", "Serve figures to Prometheus and OpenTelemetry."),
    "snapshot": ("tidegate.cli.snapshot", "app", "Read existing rows by SELECT; show the progress."),
    "lake": (
        "tidegate.cli.lake_upgrade",
        "app",
        "Back up, restore, move or upgrade the lake; check silver against the published cut.",
    ),
    "latency": ("tidegate.cli.latency", "latency", "Measure the time from commit to visible."),
    "accept": ("tidegate.cli.accept", "accept", "Continue with a source that lost uncaptured log."),
    "release": ("tidegate.cli.release", "release", "Release a held table, after its cause is gone."),
    "prewrites": (
        "tidegate.cli.prewrites",
        "prewrites",
        "Prepared transactions that nobody answered.",
    ),
    "schema": ("tidegate.cli.schema", "schema", "Show a table's versions; ask the server for its columns."),
    "verify": ("tidegate.cli.verify", "verify", "Compare silver with the source's own SELECT."),
    "query": ("tidegate.cli.query", "query", "Query all tables at one cut, with DuckDB."),
    "tail": ("tidegate.cli.tail", "tail", "Print the changes of a table with a changelog, as lines."),
    "decode": ("tidegate.cli.decode", "decode", "Print binlog files as NDJSON, one line per row change."),
    "vlog": ("tidegate.cli.vlog", "app", "List, check and show the files of a value log."),
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
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            close = difflib.get_close_matches(args[0], COMMANDS, n=1)
            remedy = f"did you mean {close[0]}?" if close else "tidegate --help lists them"
            raise UsageError(f"there is no command {args[0]!r}", remedy=remedy)
        name, command, rest = super().resolve_command(ctx, args)
        return name, load(name) if name in COMMANDS else command, rest


def load(name: str) -> Any:
    """The command as typer runs it."""
    module, function, _ = COMMANDS[name]
    command = getattr(importlib.import_module(module), function)
    if not isinstance(command, typer.Typer):
        single = typer.Typer(add_completion=False)
        single.command(name)(command)
        command = single
    return typer.main.get_command(command)


def _refuse_empty(words: Sequence[str]) -> None:
    """Raises UsageError. An empty word is mostly a script's unset variable, and for a command it is
    the same as none: every table, the first source.
    """
    for before, word in pairwise(["", *words]):
        name, given, value = word.partition("=")
        if not word.strip():
            what = f"{before} has nothing in it" if before.startswith("--") else "an argument has nothing in it"
        elif name.startswith("--") and given and not value.strip():
            what = f"{name} has nothing in it"
        else:
            continue
        raise UsageError(what, where="command line", remedy="give it a value, or leave it out")


app = typer.Typer(
    cls=Commands,
    help="Keeps Delta Lake tables equal to MySQL, MariaDB and TiDB tables, from their binlogs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"tidegate {version('tidegate')}")
        raise typer.Exit


@app.callback()
def _root(
    *,
    version: bool = typer.Option(
        False, "--version", help="Print the version and exit.", is_eager=True, callback=_show_version
    ),
) -> None:
    """Keeps Delta Lake tables equal to MySQL, MariaDB and TiDB tables, from their binlogs."""


_ANSWER: Final = "run it in a terminal; or give its options (--help), and the connection in AIRFLOW_CONN_..."


def run(arguments: list[str] | None = None) -> None:
    """Entry of the console script, without arguments; exits."""
    _share_compiled_kernels()
    if sys.stdout is None:  # closed by the caller, who wants the exit code alone
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 - for as long as the process lives
    log_form = os.environ.get(LOG_ENV)
    try:
        if log_form:
            log_lines.begin()
        _refuse_empty(sys.argv[1:] if arguments is None else arguments)
        code = app(args=arguments, standalone_mode=False)
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    except typer.Abort as error:  # Ctrl-C at a question, or no terminal to answer it
        print(file=sys.stderr)
        if isinstance(error.__context__, EOFError):
            sys.exit(_told(UsageError("nobody answers its question", where="command line", remedy=_ANSWER)))
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:  # the reader of our output has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_ERROR)
    except Exception as error:  # noqa: BLE001 - the last one who can say it in one line
        sys.exit(_told(error))
    sys.exit(code if isinstance(code, int) else 0)


def _told(error: Exception) -> int:
    """Print an error's line on stderr; its exit code."""
    if not isinstance(error, TidegateError) and hasattr(error, "exit_code") and hasattr(error, "format_message"):
        return _told_usage(error)
    known = error if isinstance(error, TidegateError) else _named(error)
    if known is not None:
        as_json = log_lines.are_json()
        line = log_lines.line("error", "tidegate", str(known), log_lines.of_error(known)) if as_json else ""
        print(line or f"tidegate: {known}", file=sys.stderr)
        if isinstance(known, UsageError | ConfigError):
            return EXIT_USAGE
        return EXIT_TRANSIENT if isinstance(known, Transient) else EXIT_ERROR
    if os.environ.get(TRACEBACK_ENV):
        traceback.print_exception(error)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    what = " ".join(f"{type(error).__name__}: {error}".split())
    print(
        f"tidegate: a fault of tidegate, please report it {ISSUES}: {what} "
        f"at {Path(frame.filename).name}:{frame.lineno}; "
        f"{TRACEBACK_ENV}=1 shows more",
        file=sys.stderr,
    )
    return EXIT_ERROR


def _told_usage(error: Any) -> int:
    """Print an error of the parser: wrong options or arguments. Without any argument it shows the help."""
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
    else:
        message = " ".join(str(error.format_message()).split())
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "tidegate"
        print(f"tidegate: {message}{_verbs(message, context)} (see {command} --help)", file=sys.stderr)
    return int(error.exit_code)


def _verbs(message: str, context: Any) -> str:
    """The subcommands that may stand here, for an unknown word: `snapshot shop` lacks one."""
    verbs = list(getattr(context.command, "commands", ())) if context is not None else []
    if not verbs or not message.startswith("No such command"):
        return ""
    return f" Behind {context.command_path} comes one of {', '.join(verbs)}"


def _named(error: Exception) -> TidegateError | None:
    """Our error for an error of a library. Its class is known by its module's name: an import would take seconds."""
    text = " ".join(str(error).split())[:MESSAGE_CHARACTERS_MAX] or type(error).__name__
    modules = {kind.__module__.split(".")[0] for kind in type(error).__mro__}
    if "pymysql" in modules:
        return SourceUnavailable(text, remedy="check the server and the network")
    if "obstore" in modules:
        return LakeUnavailable(f"the lake can't be read: {text}", remedy="check the lake's path, store and keys")
    if isinstance(error, UnicodeEncodeError):
        what = f"its output has characters that {error.encoding} lacks"
        return HostRefused(what, where="stdout", remedy="set LC_ALL to C.UTF-8, or another locale with UTF-8")
    if isinstance(error, OSError):
        return HostRefused(error.strerror or text, where=str(error.filename or ""), remedy="check it, and its rights")
    return None


def _share_compiled_kernels() -> None:
    """Let each command use the kernels that `make` compiled, instead of compiling them again beside the sources."""
    root = home()
    if os.access(root, os.W_OK):
        os.environ.setdefault("NUMBA_CACHE_DIR", str(root / ".tidegate" / "numba"))
