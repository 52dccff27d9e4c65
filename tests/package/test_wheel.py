"""The wheel: what it needs, and that it works where there is no checkout."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.support.servers import ROOT

_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
_LINE = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)(?:\[.*\])?==(?P<version>[^ ;\\]+)", re.MULTILINE)
PINS = {pin["name"]: pin["version"] for pin in _LINE.finditer((ROOT / "requirements.txt").read_text())}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel unpacked, as pip does with one that is pure Python."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder)
    return folder


def _run(site: Path, home: Path, code: str) -> str:
    """By a Python that has the dependencies, and no way to the checkout: no .pth file is read (-S)."""
    libraries = sysconfig.get_path("purelib")
    begin = f"import sys; sys.path[:0] = [{str(site)!r}]; sys.path.append({libraries!r})\n"
    done = subprocess.run(
        [sys.executable, "-S", "-c", begin + code],
        cwd=home,
        env={"HOME": str(home), "PATH": "/usr/bin:/bin", "NUMBA_CACHE_DIR": str(ROOT / ".tidegate" / "numba")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


EXTRAS = [text for extra in _PROJECT["optional-dependencies"].values() for text in extra]


@pytest.mark.parametrize(
    "needed", [Requirement(text) for text in (*_PROJECT["dependencies"], *EXTRAS)], ids=lambda one: one.name
)
def test_each_dependency_of_the_wheel_allows_what_was_tested(needed: Requirement) -> None:
    assert needed.specifier.contains(PINS[needed.name])


def test_all_that_the_package_imports_is_a_dependency(site: Path) -> None:
    """By import name. Polars and OpenTelemetry are asked for by whoever has them; OpenLineage is an extra."""
    known = {
        *(
            "airflow",
            "pyspark",
            "delta",
            "deltalake",
            "pymysql",
            "cryptography",
            "pyarrow",
            "pydantic",
            "pydantic_core",
        ),
        *("yaml", "numba", "llvmlite", "numpy", "google_crc32c", "grpc", "obstore", "duckdb", "typer", "click", "rich"),
        *("prometheus_client", "pyroaring", "opentelemetry", "openlineage", "attr"),
        *(
            "py4j",
            "asgiref",  # this and the next ones are Airflow's own
            "fastapi",
            "starlette",
            "sqlalchemy",
            "jwt",
            "croniter",
            "polars",
            "tidegate",
            "spark_jobs",
            "tidegate_airflow",
        ),
    }
    used = {name for file in site.rglob("*.py") for name in _imports(ast.parse(file.read_text()))}
    assert used - known - sys.stdlib_module_names == set()


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name.split(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]


def test_a_command_runs_from_the_wheel_alone(site: Path, tmp_path: Path) -> None:
    code = "from tidegate.cli.main import run; sys.argv = ['tidegate', '--help']\n"
    text = _run(site, tmp_path, f"{code}try:\n    run()\nexcept SystemExit as ended:\n    assert not ended.code\n")
    assert "Usage: tidegate" in text


def test_an_installed_package_has_its_dags_its_jobs_and_the_demo_s_pipeline(site: Path, tmp_path: Path) -> None:
    code = (
        "from tidegate.home import folder_of, home; from tidegate import spark_settings, pipelines\n"
        "print(home()); print(*sorted(file.name for file in folder_of('dags').glob('*.py')))\n"
        "print(spark_settings.application('apply'))\n"
        "print(pipelines.load(folder_of('include/pipelines') / 'demo.yaml').lake.path)\n"
    )
    at, dags, job, lake = _run(site, tmp_path, code).splitlines()
    assert Path(at) == tmp_path / "tidegate"
    assert dags.split() == sorted(file.name for file in (ROOT / "dags").glob("*.py"))
    assert Path(job) == site / "spark_jobs" / "apply.py"
    assert lake.startswith(str(tmp_path / "tidegate"))


def test_a_home_with_a_dags_folder_of_its_owner_changes_no_dag(site: Path, tmp_path: Path) -> None:
    """TIDEGATE_HOME may be AIRFLOW_HOME."""
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags" / "mine.py").touch()
    code = (
        f"import os; os.environ['TIDEGATE_HOME'] = {str(tmp_path)!r}\n"
        "from tidegate.home import folder_of; print(*sorted(file.name for file in folder_of('dags').glob('*.py')))\n"
    )
    assert _run(site, tmp_path, code).split() == sorted(file.name for file in (ROOT / "dags").glob("*.py"))


def test_airflow_is_told_of_the_plugin_by_an_entry_point(site: Path) -> None:
    entries = next(site.glob("*.dist-info")) / "entry_points.txt"
    assert "[airflow.plugins]\ntidegate = tidegate_airflow.plugin:TidegatePlugin" in entries.read_text()
    assert (site / "tidegate_airflow" / "plugin.py").is_file()
