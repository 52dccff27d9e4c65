"""The tutorial, word for word, as a stranger follows it: a real MariaDB, Airflow and Spark, in a folder of its own.

In:  docs/tutorial.md and docs/tutorial-changes.md; a root made of links to this checkout, with its downloads.
Out: every command does what the page says; nothing runs and nothing is left behind at the end.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.page_commands import Command, commands, missing, reader
from tests.support.servers import ROOT
from tidegate.local import class_archive, jars, mariadb
from tidegate.local.processes import marked
from tidegate.local.server import free_port

pytestmark = [pytest.mark.timeout(3600)]

PORT = 3307
PAGES = ("docs/tutorial.md", "docs/tutorial-changes.md")


def links(root: Path) -> None:
    """The checkout as a stranger has it, without copying it; include/pipelines is the root's own."""
    (root / "include" / "pipelines").mkdir(parents=True)
    (root / "include" / "tidegate").symlink_to(ROOT / "include" / "tidegate")
    for name in ("dags", "plugins", "spark_jobs", "tools", ".venv", "Makefile", "requirements.txt", "pyproject.toml"):
        (root / name).symlink_to(ROOT / name)
    state = root / ".tidegate"
    state.mkdir()
    for name in ("jars", "servers", "download", "ivy"):
        if (ROOT / ".tidegate" / name).exists():
            (state / name).symlink_to(ROOT / ".tidegate" / name)
    (state / ".warm").touch()
    if class_archive.ensure(ROOT):  # or the reader's `make jars` makes one, beside whatever else runs here
        (state / "spark.jsa").symlink_to(ROOT / ".tidegate" / "spark.jsa")
        (state / "spark.made").write_text(class_archive._made_of(root))


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    jars.ensure(ROOT)
    mariadb.install(ROOT)
    folder = tmp_path / "tidegate"
    folder.mkdir()
    links(folder)
    yield folder
    assert not marked(f"TIDEGATE_HOME={folder}"), "something still runs"


def port_at_hand() -> int:
    with socket.socket() as probe:
        return PORT if probe.connect_ex(("127.0.0.1", PORT)) else free_port()


@pytest.mark.server
@pytest.mark.spark
@pytest.mark.airflow
def test_every_command_of_the_tutorial_does_what_it_says(root: Path) -> None:
    port = port_at_hand()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
    environment |= {"TIDEGATE_HOME": str(root), "NUMBA_CACHE_DIR": str(ROOT / ".tidegate" / "numba")}
    if port != PORT:  # somebody has the tutorial's own: a reader would say `make mariadb PORT=...`
        environment |= {"PORT": str(port)}
    with reader(root, environment, seconds=900.0) as person:
        for page in PAGES:
            for command in commands((ROOT / page).read_text().replace(str(PORT), str(port))):
                if command.text.startswith("rm "):
                    person.press_ctrl_c()
                person.run(command)
    assert not [*(root / "lakes").iterdir()]
    assert not [*(root / "include" / "pipelines").iterdir()]


def test_a_command_that_fails_or_says_something_else_is_found(tmp_path: Path) -> None:
    """The test above can fail."""
    page = (
        "```shell\necho 1  2\n```\n\n```text\n1 2\n```\n\n<!-- run: again until it says -->\n```shell\necho $A\n```\n"
    )
    assert commands(page) == [Command("", "echo 1  2\n", ("1 2",)), Command("again until it says", "echo $A\n", ())]
    assert missing(("a b", "c"), "x a   b\n") == ["c"]
    with reader(tmp_path, dict(os.environ), seconds=20.0) as person:
        person.follow("```shell\nexport A=4\n```\n```shell\necho $A\n```\n\n```text\n4\n```\n")
        with pytest.raises(AssertionError, match="without"):
            person.follow("```shell\necho 1\n```\n\n```text\n2\n```\n")
        with pytest.raises(AssertionError, match="ended with 1"):
            person.follow("```shell\nfalse\n```\n")
        with pytest.raises(AssertionError, match="ended and said"):
            person.follow("<!-- run: until it says -->\n```shell\ntrue\n```\n\n```text\n2\n```\n")
