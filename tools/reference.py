"""The pages of docs/reference that are made from code: commands, tables of a lake, errors, the API, params.

In:  the commands' own help; tidegate.tables; every error that the code raises with a remedy; reference_airflow.py.
Out: Markdown files, and the script of one; with --check only whether they are there as they should be.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools import error_finder, reference_airflow

from tidegate import errors, tables
from tidegate import remedy as remedies
from tidegate.cli.main import COMMANDS, load
from tidegate.errors import TidegateError, Transient, UsageError
from tidegate.remedy import Remedy

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "reference"
CODE_FOLDERS = ("include/tidegate", "spark_jobs", "plugins")
USAGE_EXIT = 2
UNKNOWN = "…"
_COMMANDS_HEAD = """# Commands

<!-- written by `make docs` -->

Every command of `tidegate`, as `tidegate COMMAND --help` shows it. [Operate a pipeline](../operate.md) says when
to use them, and explains the [exit codes](../operate.md#exit-codes).
"""
_TABLES_HEAD = """# Tables of a lake

<!-- written by `make docs` -->

A lake has these Delta tables, besides silver's own and the changelogs. Paths begin at `lake.path`. Any reader of
Delta reads them; tidegate alone writes them. [Query silver](../query.md) has the columns added to silver, and
[Every change](../changelog.md) those of a changelog.
"""
_ERRORS_HEAD = """# Errors, and what to do

<!-- written by `make docs` -->

An error is one line: the place, the fault, and your way out. [Paste it](find-error.md) to find its entry. `…`
stands for a name, a number or a place. An error without an entry here says itself what to do, or asks you to
[report it](../../CONTRIBUTING.md#report-a-fault).

*Retry* means: the cause may pass by itself, and tidegate tries again (exit code 75). *Stop* means: a person must
help (exit code 1, or 2 for a wrong call or file). An error of one table
[holds this table](../troubleshooting.md), and the others go on.
"""


def main(arguments: list[str]) -> int:
    if arguments not in (["--check"], ["--write"]):
        print("usage: reference.py --check|--write", file=sys.stderr)
        return USAGE_EXIT
    code = 0
    for name, page in PAGES.items():
        path, wanted = FOLDER / name, page()
        if arguments == ["--write"]:
            FOLDER.mkdir(exist_ok=True)
            path.write_text(wanted, encoding="utf-8")
        elif not path.is_file() or path.read_text(encoding="utf-8") != wanted:
            print(f"{path}: isn't what the code says; run make docs", file=sys.stderr)
            code = 1
    return code


# --- commands -------------------------------------------------------------------------------------------------------
def commands_page() -> str:
    """Every command: its help, its arguments and options."""
    lines = [_COMMANDS_HEAD]
    for name in COMMANDS:
        lines += _command(f"tidegate {name}", load(name))
    return "\n".join(lines).rstrip() + "\n"


def _command(path: str, command: Any, level: int = 2) -> Iterator[str]:
    yield f"{'#' * level} {path}\n"
    yield _plain(inspect.cleandoc(command.help or "")) + "\n"
    if hasattr(command, "commands"):
        for name, below in command.commands.items():
            yield from _command(f"{path} {name}", below, level + 1)
        return
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    words = [f"{parameter.name.upper()}{'...' if parameter.nargs == -1 else ''}" for parameter in arguments]
    usage = [word if parameter.required else f"[{word}]" for word, parameter in zip(words, arguments, strict=True)]
    yield f"    {' '.join([path, '[OPTIONS]', *usage])}\n"
    yield "| argument or option | default | meaning |"
    yield "|---|---|---|"
    for word, parameter in zip(words, arguments, strict=True):
        yield f"| `{word}` | {_default(parameter)} | {_cell(parameter.help or '')} |"
    for parameter in command.params:
        if parameter.param_type_name == "option":
            names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
            yield f"| {names} | {_default(parameter)} | {_cell(parameter.help or '')} |"
    yield ""


def _default(parameter: Any) -> str:
    if parameter.required:
        return "**required**"
    value = parameter.default
    plain = isinstance(value, str | int | float) and not isinstance(value, bool) and value != ""
    return f"`{getattr(value, 'value', value)}`" if plain else ""


# --- tables ---------------------------------------------------------------------------------------------------------
def tables_page() -> str:
    """Every table of bronze and control, and the columns that tidegate adds to silver."""
    lines = [_TABLES_HEAD]
    for table in sorted(tables.ALL, key=lambda one: one.path):
        lines += [
            f"## {table.path}\n",
            _plain(table.doc) + "\n",
            f"Key: {', '.join(f'`{name}`' for name in table.key)}.\n",
        ]
        lines += ["| column | type | meaning |", "|---|---|---|"]
        for column in table.schema:
            comment = (column.metadata or {}).get(b"comment", b"").decode()
            lines.append(f"| `{column.name}` | {_cell(str(column.type))} | {_cell(comment)} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


# --- errors ---------------------------------------------------------------------------------------------------------
def errors_page() -> str:
    """Every kind of error, with its messages and their remedies."""
    messages = _messages()
    lines = [_ERRORS_HEAD]
    for name, kind in _kinds():
        rows = sorted(messages.get(name, ()))
        lines += [f"## {name}\n", f"{_plain(inspect.getdoc(kind) or '')} *{_after(kind)}.*\n"]
        if rows:
            lines += ["| message | remedy |", "|---|---|"]
            lines += [f"| {_code(what)} | {_code(remedy)} |" for what, remedy in rows]
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _kinds() -> Iterator[tuple[str, type[TidegateError]]]:
    abstract = {"TidegateError", "Terminal", "Transient"}
    for name, kind in vars(errors).items():
        if inspect.isclass(kind) and issubclass(kind, TidegateError) and name not in abstract:
            yield name, kind


def _after(kind: type[TidegateError]) -> str:
    if issubclass(kind, Transient):
        return "Retry"
    return "Stop: wrong call" if issubclass(kind, UsageError) else "Stop"


def _afters() -> dict[str, str]:
    return {name: _after(kind) for name, kind in _kinds()}


def _messages() -> dict[str, set[tuple[str, str]]]:
    """Class -> (message, remedy) of each place that raises it with both."""
    known = defaultdict[str, set[tuple[str, str]]](set)
    for folder in CODE_FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            constants = dict(_constants(tree))
            for node in ast.walk(tree):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
                    given = [keyword.value for keyword in node.keywords if keyword.arg == "remedy"]
                    what = _text(node.args[0], constants)
                    for remedy in (_text(way, constants) for of in given for way in _ways(of)):
                        if any(map(str.isalpha, what)) and remedy.strip(f" {UNKNOWN}"):
                            known[node.func.id].add((what, remedy))
    return known


def _constants(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            yield node.target.id, node.value


def _ways(node: ast.expr) -> list[ast.expr]:
    """Both sides of a choice."""
    return [*_ways(node.body), *_ways(node.orelse)] if isinstance(node, ast.IfExp) else [node]


def _text(node: ast.expr, constants: dict[str, ast.expr]) -> str:
    """A text as it stands in the code, with … for what is known at run time only."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part, constants) for part in node.values)
    if isinstance(node, ast.FormattedValue) and node.conversion == -1 and node.format_spec is None:
        return _text(node.value, constants)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left, constants) + _text(node.right, constants)
    if isinstance(node, ast.Name) and node.id in constants:
        return _text(constants[node.id], {})
    if isinstance(node, ast.Name) and isinstance(said := getattr(remedies, node.id, None), str):
        return said
    remedy = _remedy(node, constants)
    return UNKNOWN if remedy is None else str(remedy)


def _remedy(node: ast.expr, constants: dict[str, ast.expr]) -> Remedy | None:
    """One of remedy.py's, perhaps with more to do before or behind it."""
    if isinstance(node, ast.Name):
        of_its_room = getattr(remedies, node.id, None)
        return of_its_room if isinstance(of_its_room, Remedy) else None
    match node:
        case ast.Call(func=ast.Attribute(value=base, attr="after" | "then" as how), args=[text]):
            remedy = _remedy(base, constants)
            return None if remedy is None else getattr(remedy, how)(_text(text, constants))
    return None


# --- words ----------------------------------------------------------------------------------------------------------
def _plain(text: str) -> str:
    """Text of code as Markdown: `<` would begin a tag."""
    return text.replace("<", "&lt;")


def _cell(text: str) -> str:
    return " ".join(_plain(text).replace("|", r"\|").split())


def _code(text: str) -> str:
    return f"`{' '.join(text.replace('`', chr(39)).replace('|', '/').split())}`"


PAGES: dict[str, Callable[[], str]] = {
    "commands.md": commands_page,
    "tables.md": tables_page,
    "errors.md": errors_page,
    "find-error.md": lambda: error_finder.page(_messages(), _afters()),
    "find-error.js": lambda: error_finder.script(_messages(), _afters()),
    "api.md": reference_airflow.api_page,
    "params.md": reference_airflow.params_page,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
