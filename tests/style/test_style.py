"""Style is a test: what a reader of this code may count on, with a short list of reasoned exceptions.

In:  the files that git knows or would add.
Out: each broken rule with its place.
"""

from __future__ import annotations

import ast
import functools
import gc
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidegate import errors, limits
from tidegate.errors import Terminal, TidegateError, Transient

ROOT = Path(__file__).resolve().parents[2]
FUNCTION_LINES_MAX = 60
FILE_LINES_MAX = 400
ARGUMENTS_MAX = 6

# What is over, and why it reads better so. "path::function" or "path".
TOO_LONG: dict[str, str] = {}
TOO_MANY_ARGUMENTS: dict[str, str] = {
    "include/tidegate/cli/copies.py::backup": "each is an option of the command",
    "include/tidegate/cli/metrics.py::metrics": "each is an option of the command",
    "include/tidegate/cli/rebuild.py::rebuild": "each is an option of the command",
    "include/tidegate/cli/tail.py::tail": "each is an option of the command",
    "plugins/tidegate_airflow/bronze_trigger.py::__init__": "Airflow makes a trigger again from plain values",
    "plugins/tidegate_airflow/hours_trigger.py::__init__": "Airflow makes a trigger again from plain values",
}
# Three files of one prefix that aren't a folder yet. "folder/prefix", and why. This list only ever gets shorter.
FLAT_FAMILIES: dict[str, str] = {
    "benchmarks/bench": "each is a program of its own",
    "tests/support/random": "generators: one per kind of thing",
}
FAMILY_FILES_MIN = 3

# Generated, or a record of the past.
NOT_OURS = {"requirements.txt", "LICENSE"}

# A limit's unit, last in its name; `_MAX`, `_MIN` and `_DEFAULT` may follow it.
TIMES = ("SECONDS", "HOURS", "DAYS", "ATTEMPTS", "TRIES")
AMOUNTS = (
    *(
        "BYTES",
        "BITS",
        "DIGITS",
        "CHARACTERS",
        "COMMITS",
        "ROWS",
        "TABLES",
        "FILES",
        "EVENTS",
        "SEGMENTS",
        "THREADS",
        "LISTS",
        "PIPELINES",
    ),
    "HEARTBEATS",
    "HEARTBEATS_MISSED",
)
UNIT_NAME = re.compile(rf"({'|'.join((*TIMES, *AMOUNTS))})(_MAX|_MIN|_DEFAULT)?")
# What is a bound: a time, a number of tries, or an amount that is the most or the least of something.
BOUND_NAME = re.compile(rf"(^|_)(({'|'.join(TIMES)})(_MAX|_MIN)?|({'|'.join(AMOUNTS)})(_[A-Z]+)*_(MAX|MIN))$")
PRODUCT = ("include/tidegate", "spark_jobs", "plugins", "dags")
# Bounds that aren't ours: a format has them. "path::name", and whose they are.
FORMATS = {
    "include/tidegate/columnar/kernel/cells.py::_WKB_BYTES_MIN": "WKB: byte order and type",
    "include/tidegate/columnar/kernel/layout.py::BYTES_MAX": "a column of the kernel's table, not a bound",
    "include/tidegate/tidb/kernel/wire.py::_DIGITS_MAX": "nine words of nine digits: TiDB's MyDecimal",
    "include/tidegate/columnar/kernel/layout.py::ROWS_MAX": "a column of the kernel's table, not a bound",
    "include/tidegate/binlog/index/unpack.py::_EVENT_BYTES_MAX": "an event's length has 32 bits",
    "include/tidegate/capture/value_log/file.py::_REST_BYTES_MIN": "the value log's own format",
    "include/tidegate/ddl_script/shown_columns.py::_KEY_BYTES_MAX": "InnoDB's keys",
    "include/tidegate/log_files/gtid_set.py::_TAG_BYTES_MAX": "MySQL's GTID tags",
    "include/tidegate/schema/ddl/partitions.py::_DIGITS_MAX": "digits of a 64-bit number",
    "include/tidegate/snapshot/watermark.py::NAME_BYTES_MAX": "a column's length in the server's table",
    "include/tidegate/tidb/codec/datum.py::_DIGITS_MAX": "TiDB's MyDecimal",
    "include/tidegate/tables/__init__.py::_PART_BYTES_MAX": "a file name's length on local disks",
}
_ARITHMETIC = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)
# Rooms that only start processes on this computer: their waits end nothing but themselves.
OWN_BOUNDS = ("include/tidegate/demo/", "include/tidegate/local/")


def files(*suffixes: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    found = [ROOT / name for name in listed.stdout.splitlines() if name not in NOT_OURS]
    return [path for path in found if path.is_file() and (not suffixes or path.suffix in suffixes)]


@functools.cache
def sources() -> list[tuple[Path, ast.Module]]:
    return [(path, ast.parse(path.read_text(), str(path))) for path in files(".py")]


@functools.cache
def inside(tree: ast.Module) -> list[ast.AST]:
    """The nodes that a rule looks at, wherever they stand."""
    looked_at = ast.FunctionDef | ast.AsyncFunctionDef | ast.ExceptHandler | ast.Import | ast.ImportFrom
    return [node for node in ast.walk(tree) if isinstance(node, looked_at)]


@pytest.fixture(scope="module", autouse=True)
def _sources_are_forgotten() -> Iterator[None]:
    """Millions of nodes, which every collection of the tests behind these would look through."""
    gc.disable()
    yield
    sources.cache_clear()
    inside.cache_clear()
    gc.enable()


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in inside(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def name_of(path: Path, inner: str = "") -> str:
    place = str(path.relative_to(ROOT))
    return f"{place}::{inner}" if inner else place


def report(broken: list[str]) -> None:
    assert not broken, "\n" + "\n".join(broken)


def test_every_module_says_what_goes_in_and_out() -> None:
    report([name_of(path) for path, tree in sources() if tree.body and not ast.get_docstring(tree)])


def test_functions_fit_a_screen() -> None:
    broken = []
    for path, tree in sources():
        for node in functions(tree):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES_MAX and name_of(path, node.name) not in TOO_LONG:
                broken.append(f"{name_of(path, node.name)}: {lines} lines")
    report(broken)


def test_files_fit_a_sitting() -> None:
    broken = []
    for path in files(".py"):
        lines = len(path.read_text().splitlines())
        if lines > FILE_LINES_MAX and name_of(path) not in TOO_LONG:
            broken.append(f"{name_of(path)}: {lines} lines")
    report(broken)


def test_functions_take_few_arguments() -> None:
    broken = []
    for path, tree in sources():
        for node in functions(tree):
            named = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
            count = len([name for name in named if name not in ("self", "cls")])
            # A test's arguments are its fixtures.
            if node.name.startswith("test_") or name_of(path, node.name) in TOO_MANY_ARGUMENTS:
                continue
            if count > ARGUMENTS_MAX:
                broken.append(f"{name_of(path, node.name)}: {count} arguments")
    report(broken)


def families() -> dict[str, set[str]]:
    """Files that share the first word of their names, per folder; tests are named after what they test."""
    found: dict[str, set[str]] = {}
    for path in files(".py"):
        if not path.name.startswith(("test_", "__")):
            found.setdefault(f"{path.parent.relative_to(ROOT)}/{path.stem.split('_')[0]}", set()).add(path.stem)
    return {name: stems for name, stems in found.items() if len(stems) >= FAMILY_FILES_MIN}


def test_three_files_of_one_prefix_are_a_folder() -> None:
    report([f"{name}: {sorted(stems)}" for name, stems in families().items() if name not in FLAT_FAMILIES])
    report([f"{name} is no exception any more" for name in FLAT_FAMILIES if name not in families()])


def test_every_exception_from_the_rules_is_still_needed() -> None:
    known = {name_of(path) for path in files(".py")}
    known |= {name_of(path, node.name) for path, tree in sources() for node in functions(tree)}
    report([name for name in (*TOO_LONG, *TOO_MANY_ARGUMENTS) if name not in known])


# Spelled so that this file doesn't break its own rules.
FORBIDDEN = {
    "left undone": re.compile(r"\bTO" + r"DO\b|\bFIX" + r"ME\b|\bXX" + r"X\b"),
    "a path of one machine": re.compile(r"(?<![\w.$}~-])/(wo" + r"rk|ro" + r"ot|farm)/"),
    "a registry's address": re.compile(
        r"https?://[\w.-]*(mav" + r"en|py" + r"pi|python" + r"hosted|deb" + r"ian\.org|go" + r"lang|npm" + r"js)[\w.-]*"
    ),
    "a package index": re.compile(r"^\s*--(index|extra-index)-" + r"url|^\s*--find-" + r"links", re.MULTILINE),
}


@pytest.mark.parametrize("rule", FORBIDDEN)
def test_no_file_holds(rule: str) -> None:
    broken = []
    for path in [*files(), ROOT / "requirements.txt"]:
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue  # recorded bytes
        for found in FORBIDDEN[rule].finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            broken.append(f"{name_of(path)}:{line}: {found.group(0)!r}")
    report(broken)


def test_no_error_is_swallowed() -> None:
    broken = []
    for path, tree in sources():
        for node in inside(tree):
            if not isinstance(node, ast.ExceptHandler):
                continue
            catches_all = node.type is None or (
                isinstance(node.type, ast.Name) and node.type.id in ("Exception", "BaseException")
            )
            if catches_all and all(isinstance(step, ast.Pass | ast.Continue) for step in node.body):
                broken.append(f"{name_of(path)}:{node.lineno}")
    report(broken)


def test_every_error_says_stop_or_retry_and_not_both() -> None:
    kinds = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type)
        and issubclass(kind, TidegateError)
        and kind not in (TidegateError, Terminal, Transient)
    ]
    assert len(kinds) > 10
    report([kind.__name__ for kind in kinds if issubclass(kind, Terminal) == issubclass(kind, Transient)])


def test_every_limit_ends_in_its_unit() -> None:
    names = [name for name in vars(limits) if name.isupper() and name != "MIB"]
    assert len(names) > 10
    report([name for name in names if not re.search(rf"(^|_){UNIT_NAME.pattern}$", name)])


def bounds(path: Path, tree: ast.Module) -> Iterator[str]:
    """Numbers at a module's top whose names say that they bound something."""
    for node in tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        for target in targets:
            if not isinstance(target, ast.Name) or not BOUND_NAME.search(target.id) or node.value is None:
                continue
            number = all(isinstance(inner, _ARITHMETIC) for inner in ast.walk(node.value))
            if number:
                yield name_of(path, target.id)


def test_every_bound_is_in_limits_or_a_formats() -> None:
    found = {
        name
        for path, tree in sources()
        if name_of(path).startswith(PRODUCT)
        and not name_of(path).startswith(OWN_BOUNDS)
        and path.parent != ROOT / "include" / "tidegate" / "limits"
        for name in bounds(path, tree)
    }
    report(sorted(found - FORMATS.keys()))
    report([f"{name} is no exception any more" for name in sorted(FORMATS.keys() - found)])


def test_benchmarks_and_tools_use_of_the_tests_what_is_meant_for_them() -> None:
    broken = [
        f"{name_of(path)}: {node.module}"
        for path, tree in sources()
        if name_of(path).startswith(("benchmarks/", "tools/"))
        for node in inside(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests.")
        if not (node.module or "").startswith("tests.kit")
    ]
    report(broken)


def test_other_rooms_see_the_pipeline_file_through_its_door() -> None:
    """Config and pipelines have one door each: what is inside may move."""
    broken = [
        f"{name_of(path)}: {node.module}"
        for path, tree in sources()
        for room in ("config", "pipelines")
        if name_of(path).startswith(PRODUCT) and not name_of(path).startswith(f"include/tidegate/{room}/")
        for node in inside(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"tidegate.{room}.")
    ]
    report(broken)


def test_the_product_imports_nothing_of_its_tests_benchmarks_and_tools() -> None:
    """They lie beside it on the path of an environment that is made from a checkout."""
    broken = [
        f"{name_of(path)}: {name}"
        for path, tree in sources()
        if name_of(path).startswith(PRODUCT)
        for node in inside(tree)
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else []
        )
        if name.split(".")[0] in ("tests", "benchmarks", "tools", "docker", "dags")
    ]
    report(broken)
