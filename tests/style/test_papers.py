"""The papers say what is so: their links lead somewhere, what they name exists, what they list is the code's own list.

In:  every Markdown file of the repository.
Out: each statement in them that can be checked and isn't true.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kit.mysql9 import MySQL9
from tidegate import config, tables
from tidegate.cli.main import COMMANDS, load
from tidegate.errors import ConfigError
from tidegate.local.mariadb import MariaDB

ROOT = Path(__file__).resolve().parents[2]
# A record of the past may name what is gone.
PAST = "CHANGELOG.md"
PAPERS = sorted(
    name
    for name in subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    if (ROOT / name).is_file()
)
# Lines that a page may have: what is longer isn't read.
LINES_MAX = {"README.md": 130, "ARCHITECTURE.md": 170, "docs/pipeline.md": 210}  # half of the last is the table of keys
# Made from code, to be searched.
GENERATED = {f"docs/reference/{name}.md" for name in ("commands", "errors", "tables", "api", "params", "find-error")}
PAGE_LINES_MAX = 130
SHORT = [*LINES_MAX, *(name for name in PAPERS if name.startswith("docs/") and name not in {*LINES_MAX, *GENERATED})]

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
YAML_BLOCK = re.compile(r"^( *)```yaml\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`\n]+)`")
FILE = re.compile(r"[\w.*-]+(?:/[\w.*-]+)*/?")
SUFFIXES = (".py", ".yaml", ".md", ".toml", ".txt", ".in", ".sql", ".sh")
# What a page's part of a pipeline file is added to.
PIPELINE = """
pipeline: shop
lake: {path: lakes/shop}
sources: {main: {conn_id: shop_db, flavour: mariadb}}
tables: {include: ["shop.*"]}
"""
# Where a name in backticks may begin.
PLACES = (
    *(ROOT, ROOT / "include", ROOT / "include" / "tidegate", ROOT / "spark_jobs", ROOT / "plugins"),
    *(ROOT / "docs", ROOT / "tests", ROOT / "plugins" / "tidegate_airflow"),
)
# Folders that aren't the repository's: of a lake, of a person, of a server. And examples of names.
NOT_OURS = re.compile(
    r"(bronze|silver|control|staging|lakes|dags|binlog|s3)/?|shop\b|dump\.sql|\.tidegate|\.venv"
    r"|include/pipelines/shop|airflow_local_settings\.py|workloads/NAME|[\w-]+\.sql$"
)
COMMAND = re.compile(r"(?:^|bin/|`)tidegate ([a-z]+(?:-[a-z]+)*)(?: ([a-z]+)\b)?([^`\n#|]*)", re.MULTILINE)
MAKE = re.compile(r"(?:^|`)make ([a-z0-9-]+)\b", re.MULTILINE)


def text_of(paper: str) -> str:
    return (ROOT / paper).read_text()


def without_blocks(text: str) -> str:
    """The text with blocks of code blanked: their brackets are no links."""
    return CODE_BLOCK.sub(lambda block: "\n" * block[0].count("\n"), text)


def line_of(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def anchors(text: str) -> set[str]:
    """What the headings of a page are linked by."""
    headings = re.findall(r"^#+ (.+)$", without_blocks(text), re.MULTILINE)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", heading).strip().lower() for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


def broken_links(paper: str, text: str) -> Iterator[str]:
    for found in LINK.finditer(without_blocks(text)):
        target = found[1]
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (ROOT / paper).parent / path if path else ROOT / paper
        place = f"{paper}:{line_of(text, found.start())}: {target}"
        if not file.exists() or not file.resolve().is_relative_to(ROOT):
            yield f"{place}: there is no such file"
        elif anchor and (file.suffix != ".md" or anchor not in anchors(file.read_text())):
            yield f"{place}: there is no such heading"


def missing_files(paper: str, text: str) -> Iterator[str]:
    for found in CODE.finditer(without_blocks(text)):
        name = found[1]
        looks_like_file = FILE.fullmatch(name) and (
            name.endswith(SUFFIXES) or ("/" in name and not name.startswith("/"))
        )
        if not looks_like_file or NOT_OURS.match(name):
            continue
        if not any(any(place.glob(name.rstrip("/"))) for place in (*PLACES, (ROOT / paper).parent)):
            yield f"{paper}:{line_of(text, found.start())}: `{name}`: there is no such file"


def unknown_commands(paper: str, text: str) -> Iterator[str]:
    for at, code in (*((found.start(), found[0]) for found in CODE_BLOCK.finditer(text)), *spans(text)):
        for found in COMMAND.finditer(code):
            yield from unknown_command(found, f"{paper}:{line_of(text, at + found.start())}")


def spans(text: str) -> Iterator[tuple[int, str]]:
    for found in CODE.finditer(without_blocks(text)):
        yield found.start(), found[0]


def unknown_command(found: re.Match[str], place: str) -> Iterator[str]:
    command: Any = load(found[1]) if found[1] in COMMANDS else None
    if command is None:
        yield f"{place}: tidegate {found[1]}: there is no such command"
        return
    if hasattr(command, "commands"):
        command = command.commands.get(found[2], command)
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    for option in re.findall(r"(?<!\S)--[a-z-]+", found[3]):
        if option not in known:
            yield f"{place}: tidegate {found[1]}: there is no option {option}"


@pytest.mark.parametrize("paper", PAPERS)
def test_every_link_leads_to_a_file_and_a_heading(paper: str) -> None:
    assert not [*broken_links(paper, text_of(paper))]


@pytest.mark.parametrize("paper", [paper for paper in PAPERS if paper != PAST])
def test_every_file_that_is_named_exists(paper: str) -> None:
    assert not [*missing_files(paper, text_of(paper))]


@pytest.mark.parametrize("paper", [paper for paper in PAPERS if paper != PAST])
def test_every_command_that_is_named_exists_with_its_options(paper: str) -> None:
    text = text_of(paper)
    assert not [*unknown_commands(paper, text)]
    targets = set(re.findall(r"^([a-z0-9-]+):", text_of("Makefile"), re.MULTILINE))
    named = set() if paper in GENERATED else set(MAKE.findall(text))  # a message may begin with the verb
    assert not named - targets


def test_a_broken_link_a_missing_file_and_a_wrong_option_are_found() -> None:
    """The tests above can fail: they search real pages with the same functions."""
    page = "# One two\n[a](docs/none.md)\n[b](docs/query.md#none)\n[c](docs/query.md#types)\n"
    assert [*broken_links("README.md", page)] == [
        "README.md:2: docs/none.md: there is no such file",
        "README.md:3: docs/query.md#none: there is no such heading",
    ]
    assert [*missing_files("README.md", "\n`include/none.py` `errors.py`")] == [
        "README.md:2: `include/none.py`: there is no such file"
    ]
    assert [*unknown_commands("README.md", "`tidegate status --none`\n```\ntidegate nose x\n```\ntidegate is")] == [
        "README.md:3: tidegate nose: there is no such command",
        "README.md:1: tidegate status: there is no option --none",
    ]
    links = sum(len(LINK.findall(without_blocks(text_of(paper)))) for paper in PAPERS)
    named = sum(len(CODE.findall(text_of(paper))) for paper in PAPERS)
    assert (links > 200, named > 500) == (True, True), "the patterns find what is there"


def test_every_page_is_linked_from_another() -> None:
    pages = {name for name in PAPERS if name.startswith("docs/")}
    linked = {
        str(((ROOT / paper).parent / found[1].partition("#")[0]).resolve().relative_to(ROOT))
        for paper in PAPERS
        for found in LINK.finditer(without_blocks(text_of(paper)))
        if not re.match(r"[a-z]+:|#", found[1])
    }
    assert not pages - linked


@pytest.mark.parametrize("paper", SHORT)
def test_a_page_is_short_enough_to_be_read(paper: str) -> None:
    assert len(text_of(paper).splitlines()) <= LINES_MAX.get(paper, PAGE_LINES_MAX)


def test_architecture_names_every_room() -> None:
    text = text_of("ARCHITECTURE.md")
    library = {path.parent.name for path in (ROOT / "include" / "tidegate").glob("*/__init__.py")}
    jobs = {path.parent.name for path in (ROOT / "spark_jobs").glob("*/__init__.py")}
    assert not {room for room in library | jobs if not re.search(rf"\b{room}\b", text)}


@pytest.mark.parametrize("container", ["tidegate", "spark_jobs"])
def test_the_drawing_of_rooms_is_the_order_that_import_rules_keep(container: str) -> None:
    contracts = tomllib.loads(text_of("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    (layers,) = [rule["layers"] for rule in contracts if rule["type"] == "layers" and rule["containers"] == [container]]
    folder = ROOT / ("spark_jobs" if container == "spark_jobs" else "include/tidegate")
    drawing = next(block[0] for block in CODE_BLOCK.finditer(text_of("ARCHITECTURE.md"))).splitlines()
    lines = (
        drawing
        if container == "spark_jobs"
        else drawing[[line.startswith("include") for line in drawing].index(True) :]
    )
    rooms = [[name.strip() for name in layer.split("|")] for layer in layers]
    found = [
        (next((at for at, line in enumerate(lines) if re.search(rf"(?:^|  |\| ){room}(?:  | \||$)", line)), -1), room)
        for layer in rooms
        for room in layer
        if (folder / room / "__init__.py").exists()
    ]
    assert len(found) > 3
    assert [at for at, _ in found] == sorted(at for at, _ in found), found
    assert found[0][0] >= 0, found


def test_every_control_table_is_explained() -> None:
    text = "".join(text_of(paper) for paper in PAPERS if paper != PAST)
    assert not [table.path for table in tables.ALL if table.path.rpartition("/")[2] not in text]


def test_changelog_has_an_unreleased_section() -> None:
    assert re.search(r"^## \[Unreleased\]$", text_of(PAST), re.MULTILINE)


def refused_blocks(paper: str, text: str) -> Iterator[str]:
    """Blocks of YAML that don't parse, and parts of a pipeline file that tidegate refuses."""
    for found in YAML_BLOCK.finditer(text):
        block = "\n".join(line.removeprefix(found[1]) for line in found[2].splitlines())
        place = f"{paper}:{line_of(text, found.start())}"
        try:
            part = yaml.safe_load(block) or {}
            if part.keys() <= config.Pipeline.model_fields.keys() and part.keys() != {"sources"}:  # those are dbt's
                config.parse(yaml.safe_dump(yaml.safe_load(PIPELINE) | part), where=place)
        except (yaml.YAMLError, ConfigError) as error:
            yield f"{place}: {error}"


@pytest.mark.parametrize("paper", [paper for paper in PAPERS if "```yaml" in text_of(paper)])
def test_every_part_of_a_pipeline_file_that_is_shown_is_accepted(paper: str) -> None:
    assert not [*refused_blocks(paper, text_of(paper))]


def test_yaml_that_does_not_parse_or_is_refused_is_found() -> None:
    text = "```yaml\na: b: c\n```\n\n```yaml\ntables: {including: [a.b]}\n```\n\n```yaml\nimage: x\n```\n"
    assert [line.split(": ")[0] for line in refused_blocks("a.md", text)] == ["a.md:1", "a.md:5"]


def test_every_pipeline_key_is_listed_as_the_model_has_it() -> None:
    subprocess.run([sys.executable, "tools/pipeline_keys.py", "--check", "docs/pipeline.md"], cwd=ROOT, check=True)


def test_the_reference_is_what_the_code_says() -> None:
    subprocess.run([sys.executable, "tools/reference.py", "--check"], cwd=ROOT, check=True)
    errors = text_of("docs/reference/errors.md")
    assert "`set gtid_mode=ON there, or let the account write tidegate.watermark (docs/source.md)`" in errors
    assert len(re.findall(r"^\| `", errors, re.MULTILINE)) > 400, "messages are found where they are raised"
    assert {f"tidegate {name}" for name in COMMANDS} <= set(
        re.findall(r"^## (.*)$", text_of("docs/reference/commands.md"), re.MULTILINE)
    )


def test_the_grants_that_are_asked_for_are_those_that_the_tests_run_with() -> None:
    text = text_of("docs/source.md")
    for grant in (*MariaDB.grants, *MySQL9.grants):
        assert f"GRANT {grant} TO" in text


def test_compose_file_uses_only_what_is_there() -> None:
    text = text_of("docker/compose.yaml")
    compose = yaml.safe_load(text)
    for name, service in compose["services"].items():
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert source in compose["volumes"] or (ROOT / "docker" / source).exists(), f"{name}: {source}"
    asked = set(re.findall(r"\$\{([A-Z0-9_]+)", text))
    assert asked == set(re.findall(r"^([A-Z0-9_]+)=$", text_of("docker/example.env"), re.MULTILINE))


def test_compose_builds_the_image_once_and_its_user_owns_every_volume() -> None:
    services = yaml.safe_load(text_of("docker/compose.yaml"))["services"]
    users = [service for service in services.values() if service["image"] == "tidegate"]
    assert sum("build" in service for service in users) == 1
    dockerfile = text_of("docker/Dockerfile")
    owned = re.search(r"chown -R tidegate (.*)", dockerfile)
    assert owned is not None
    for mount in {mount for service in users for mount in service["volumes"] if not mount.startswith(".")}:
        # A volume takes the owner of the image's folder. Where there is none, it belongs to root.
        folder = mount.split(":")[1]
        assert re.search(rf"mkdir .*{folder}\b", dockerfile), mount
        assert any(folder.startswith(parent) for parent in owned[1].split()), mount


def test_compose_and_chart_have_the_parts_that_make_topology_kills() -> None:
    services = yaml.safe_load(text_of("docker/compose.yaml"))["services"]
    commands = {service.get("command") for service in services.values() if isinstance(service.get("command"), str)}
    chart = text_of("docker/helm/templates/airflow.yaml")
    for part in ("scheduler", "dag-processor", "triggerer"):
        assert f"airflow {part}" in commands
        assert f'"airflow" "{part}"' in chart
    topology = text_of("tests/topology/services.py") + text_of("tests/kit/services.py")
    for program in ("redis-server", "versitygw", "org.apache.spark.deploy.worker.Worker"):
        assert program in topology
        assert program in text_of("docker/compose.yaml")


def test_readme_opens_with_demo_and_test() -> None:
    first = re.search(r"```\w*\n(.*?)```", text_of("README.md"), re.DOTALL)
    assert first is not None
    assert [line.split("#")[0].strip() for line in first[1].strip().splitlines()] == ["make demo", "make test"]


def test_workflows_call_targets_of_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", text_of("Makefile"), re.MULTILINE))
    called = set[str]()
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        for job in yaml.safe_load(path.read_text())["jobs"].values():
            commands = " ; ".join(step.get("run", "") for step in job["steps"])
            called |= set(re.findall(r"\bmake ([a-z0-9-]+)", commands))
            matrix = job.get("strategy", {}).get("matrix", {})
            called |= {run.split()[0] for run in matrix.get("run", ())}
            called |= {one["run"] for one in matrix.get("include", ())}
    assert {"lint", "test-quick", "test-long", "soak"} <= called
    assert not called - targets - {"python3"}  # `install ... make python3`: a package
