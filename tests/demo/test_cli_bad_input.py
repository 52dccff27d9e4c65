"""Every command with bad input: one line on stderr that names what is wrong, nothing else, and the right exit code.

In:  commands in this process, through the entry of the console script; a lake that can't be read, a server that isn't
     there.
Out: exit codes 1, 2 and 75, and no stack trace anywhere.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tidegate.cli import main
from tidegate.home import EXIT_ERROR, EXIT_TRANSIENT, EXIT_USAGE
from tidegate.local.processes import sole
from tidegate.remedy import ISSUES

CONNECTION = "AIRFLOW_CONN_SHOP_DB"
PIPELINE = """pipeline: shop
lake: {{path: {lake}}}
sources: {{main: {{conn_id: shop_db, flavour: mysql}}}}
tables: {{include: ["shop.*", "tidegate.latency_marker"]}}
"""
# A pipeline is wanted in place of FILE.
WITH_A_PIPELINE = [
    *(
        ["check", "FILE"],
        ["status", "FILE"],
        ["capture", "FILE"],
        ["apply", "FILE"],
        ["maintain", "FILE"],
        ["verify", "FILE"],
    ),
    *(["rebuild", "FILE", "shop.a"], ["latency", "FILE"], ["release", "FILE", "shop.a"], ["up", "FILE"]),
    *(["schema", "log", "FILE", "shop.a"], ["schema", "refresh", "FILE", "shop.a"], ["vlog", "check", "FILE"]),
    *(["snapshot", word, "FILE"] for word in ("start", "run", "pause", "resume", "cancel", "status")),
]
IDS = [" ".join(word for word in words if word != "FILE") for words in WITH_A_PIPELINE]


@dataclass
class Ended:
    code: int
    out: str
    err: str

    @property
    def line(self) -> str:
        """The only line on stderr."""
        assert "Traceback" not in self.err
        assert self.out == ""
        (line,) = self.err.splitlines()
        assert line.startswith("tidegate: ")
        assert not line.startswith(("tidegate: UsageError", "tidegate: ConfigError", "tidegate: a fault of tidegate"))
        return line


Run = Callable[..., Ended]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)

    def run(*words: str) -> Ended:
        with pytest.raises(SystemExit) as ended:
            main.run(list(words))
        told = capsys.readouterr()
        code = ended.value.code
        return Ended(code if isinstance(code, int) else 0, told.out, told.err)

    return run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    written = tmp_path / "shop.yaml"
    written.write_text(PIPELINE.format(lake=tmp_path / "lake"))
    return written


def _words(words: list[str], pipeline: object) -> list[str]:
    return [str(pipeline) if word == "FILE" else word for word in words]


@pytest.mark.parametrize("words", WITH_A_PIPELINE, ids=IDS)
def test_unknown_pipeline(run: Run, words: list[str]) -> None:
    for name in ("dmo", "/nope/shop.yaml", "/nope"):
        ended = run(*_words(words, name))
        assert ended.code == EXIT_USAGE
        assert name in ended.line


@pytest.mark.parametrize("words", WITH_A_PIPELINE, ids=IDS)
def test_a_pipeline_file_that_is_wrong(run: Run, words: list[str], file: Path) -> None:
    file.write_text(file.read_text() + "captur: {}\n")
    ended = run(*_words(words, file))
    assert ended.code == EXIT_USAGE
    assert f"{file}:5: captur: unknown key" in ended.line


@pytest.mark.parametrize(
    "words",
    [
        *(["rebuild", "FILE", "shop.nope"], ["maintain", "FILE", "--table", "shop.nope"]),
        *(["release", "FILE", "shop.nope"], ["schema", "log", "FILE", "shop.nope"]),
        *(["schema", "refresh", "FILE", "shop.nope"], ["snapshot", "pause", "FILE", "shop.nope"]),
    ],
    ids=" ".join,
)
def test_unknown_table_of_an_empty_lake(run: Run, words: list[str], file: Path) -> None:
    ended = run(*_words(words, file))
    assert ended.code == EXIT_USAGE
    assert "shop.nope" in ended.line


@pytest.mark.parametrize("words", [["latency", "FILE"], ["capture", "FILE"], ["vlog", "ls", "FILE"]], ids=" ".join)
def test_unknown_source(run: Run, words: list[str], file: Path) -> None:
    ended = run(*_words(words, file), "--source", "nope")
    assert ended.code == EXIT_USAGE
    assert ended.line.endswith("there is no source 'nope'; sources: main")


NEEDS_THE_SOURCE = [["capture", "FILE"], ["verify", "FILE"], ["latency", "FILE"], ["up", "FILE"], ["check", "FILE"]]
NEEDS_THE_SOURCE += [["snapshot", "run", "FILE"], ["snapshot", "start", "FILE", "shop.a"]]


@pytest.mark.parametrize("words", NEEDS_THE_SOURCE, ids=" ".join)
def test_no_connection(run: Run, words: list[str], file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CONNECTION, raising=False)
    ended = run(*_words(words, file))
    assert ended.code == EXIT_USAGE
    assert CONNECTION in ended.line


@pytest.mark.parametrize("words", [*NEEDS_THE_SOURCE[:3], NEEDS_THE_SOURCE[-1]], ids=" ".join)
def test_the_server_is_down(run: Run, words: list[str], file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv(CONNECTION, f"mysql://u:p@127.0.0.1:{taken.getsockname()[1]}/")
        ended = run(*_words(words, file))
    assert ended.code == EXIT_TRANSIENT
    assert "connection refused" in ended.line


READS_THE_LAKE = [
    *(["status", "FILE"], ["release", "FILE", "shop.a"], ["schema", "log", "FILE", "shop.a"]),
    *(["schema", "refresh", "FILE", "shop.a"], ["rebuild", "FILE", "shop.a"]),
    ["maintain", "FILE", "--table", "shop.a"],
]


@pytest.mark.parametrize("words", READS_THE_LAKE, ids=" ".join)
def test_a_lake_that_cannot_be_read(run: Run, words: list[str], file: Path, tmp_path: Path) -> None:
    for name in ("bronze/segments", "control/cuts", "control/table_states", "control/schema_history"):
        log = tmp_path / "lake" / name / "_delta_log"
        log.mkdir(parents=True)
        (log / f"{0:020}.json").write_text("no JSON\n")
    ended = run(*_words(words, file))
    assert ended.code == EXIT_ERROR
    assert str(tmp_path / "lake") in ended.line
    assert "version 0 of its log isn't readable" in ended.line


@pytest.mark.parametrize(
    "words",
    [
        *(["decode", "/nope/binlog.000001"], ["decode", "--schema", "/nope/x.sql", __file__]),
        *(["ddl", "/nope/x.sql"], ["ddl", "--server", "99.9", __file__], ["vlog", "ls", "/nope/log"]),
        *(["demo", "--seconds", "1"], ["stauts"], ["status"], ["status", "demo", "--jso"], ["vlog", "lss"]),
        *(["snapshot", "begin", "demo"], ["snapshot", "start"]),
    ],
    ids=" ".join,
)
def test_what_the_command_line_itself_gets_wrong(run: Run, words: list[str]) -> None:
    ended = run(*words)
    assert ended.code == EXIT_USAGE
    assert ended.line


@pytest.mark.parametrize(
    "words",
    [
        *(
            ["maintain", "FILE", "--table", ""],
            ["prewrites", "FILE", "--rollback", ""],
            ["accept", "FILE", "", "--lost"],
        ),
        *(["rebuild", "FILE", "shop.a", "--swap", "--at", ""], ["rebuild", "FILE", "shop.a", "--to", ""]),
        *(
            ["verify", "FILE", "--table", ""],
            ["vlog", "owed", "FILE", "--forget", ""],
            ["capture", "FILE", "--source", ""],
        ),
        *(["capture", "FILE", "--state-dir", ""], ["lake", "move", "FILE", ""], ["snapshot", "cancel", "FILE", ""]),
        *(["tail", "FILE", "shop.a", "--where="], ["query", "FILE", "SELECT 1", "--at", " "], ["release", "FILE", ""]),
    ],
    ids=" ".join,
)
def test_an_option_with_nothing_in_it_is_none_and_never_means_all(run: Run, words: list[str], file: Path) -> None:
    """A script's variable is unset: `--table "$TABLE"` would be every table, `--source "$SOURCE"` the first source."""
    ended = run(*_words(words, file))
    assert ended.code == EXIT_USAGE
    assert ended.line.endswith("has nothing in it; give it a value, or leave it out")


@pytest.mark.parametrize(
    "words",
    [
        *(
            ["status", "FILE", "--max-lag", "nan"],
            ["capture", "FILE", "--idle", "nan"],
            ["top", "FILE", "--every", "inf"],
        ),
        *(
            ["capture", "FILE", "--idle", "-1"],
            ["verify", "FILE", "--timeout", "nan"],
            ["capture", "FILE", "--run-for=-1"],
        ),
    ],
    ids=" ".join,
)
def test_a_number_that_bounds_nothing_is_refused(run: Run, words: list[str], file: Path) -> None:
    ended = run(*_words(words, file))
    assert ended.code == EXIT_USAGE
    assert f"Invalid value for '{words[2].partition('=')[0]}'" in ended.line


@pytest.mark.parametrize(
    "words",
    [
        *(["apply", "FILE", "--run-for", "60"], ["apply", "FILE", "--run-for", "60", "--mode", "batch"]),
        *(["metrics", "FILE", "--once", "--otlp"], ["snapshot", "status", "FILE", "--json", "--follow"]),
        *(["query", "FILE", "SELECT 1", "--views", "v.sql"], ["query", "FILE", "--json", "--views", "v.sql"]),
        ["decode", __file__, "--database", "shop"],
    ],
    ids=" ".join,
)
def test_an_option_that_would_be_passed_over_is_refused(
    run: Run, words: list[str], file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tidegate.cli.apply.submit", None)
    ended = run(*_words(words, file))
    assert ended.code == EXIT_USAGE
    assert "--" in ended.line
    assert not (tmp_path / "v.sql").exists()


def test_a_second_up_says_who_is_up_and_leaves_it_alone(
    run: Run, file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(CONNECTION, "mysql://u:p@127.0.0.1:1/")
    monkeypatch.setenv("TIDEGATE_HOME", str(tmp_path))
    state = tmp_path / ".tidegate" / "up" / "shop"
    with sole(state, "tidegate up shop"):
        (state / "pipelines").mkdir()
        ended = run("up", str(file))
        assert (state / "pipelines").exists(), "nothing of the first one's is touched"
    assert ended.code == EXIT_USAGE
    assert f"tidegate up shop runs already: process {os.getpid()}, since " in ended.line


def test_a_port_that_is_taken_is_said_before_anything_is_started(
    run: Run, file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(CONNECTION, "mysql://u:p@127.0.0.1:1/")
    monkeypatch.setenv("TIDEGATE_HOME", str(tmp_path))
    monkeypatch.setattr("tidegate.local.jars.ensure", lambda _: None)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = str(taken.getsockname()[1])
        ended = run("up", str(file), "--port", port)
    assert ended.code == EXIT_USAGE
    assert f"port {port} is taken" in ended.line


def test_a_typo_is_told_what_was_meant(run: Run) -> None:
    assert run("stauts").line.endswith("did you mean status?")
    assert "did you mean demo?" in run("status", "dmo").line


def test_a_pipeline_in_the_place_of_a_verb_is_told_the_verbs(run: Run) -> None:
    line = run("snapshot", "shop").line
    assert "snapshot comes one of start, run, restart, pause, resume, cancel, status (see" in line


def test_a_fault_of_our_own_is_one_line_too(run: Run, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.pipelines.load", lambda _: {}["no such key"])
    ended = run("status", str(file))
    assert ended.code == EXIT_ERROR
    (line,) = ended.err.splitlines()
    assert line.startswith(
        f"tidegate: a fault of tidegate, please report it {ISSUES}: KeyError: 'no such key' at test_cli_bad"
    )


def test_an_empty_binlog_file_is_named(run: Run, tmp_path: Path) -> None:
    """As of a download that failed: no rows, and no word of it."""
    (tmp_path / "binlog.000001").write_bytes(b"")
    ended = run("decode", str(tmp_path / "binlog.000001"))
    assert (ended.code, ended.out) == (0, "")
    assert ended.err == "tidegate: note: binlog.000001 is empty\n"


def test_figures_of_no_pipeline_and_of_a_broken_one_say_so(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else no alert would ever come of it."""
    monkeypatch.setenv("TIDEGATE_PIPELINES", str(tmp_path / "nope"))
    ended = run("metrics", "--once")
    assert ended.code == EXIT_USAGE
    assert "no folder of pipeline files is here" in ended.err
    monkeypatch.setenv("TIDEGATE_PIPELINES", str(tmp_path))
    (tmp_path / "shop.yaml").write_text("pipeline: shop\n")
    ended = run("metrics", "--once")
    assert ended.code == EXIT_USAGE
    assert f"tidegate: warning: no figures: {tmp_path}/shop.yaml:1: lake: is missing" in ended.err


def test_output_that_the_terminal_cant_take_is_no_fault(run: Run, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.pipelines.load", lambda _: "é".encode("ascii"))
    ended = run("status", str(file))
    assert ended.code == EXIT_ERROR
    assert "stdout: its output has characters that ascii lacks; set LC_ALL to C.UTF-8" in ended.line


def test_version_and_json_of_nothing(run: Run, file: Path) -> None:
    assert run("--version").out.startswith("tidegate 0.")
    ended = run("status", str(file), "--json")
    assert (ended.code, json.loads(ended.out)["tables"]) == (1, []), "nothing was ever captured into this lake"


def test_a_check_of_nothing_is_no_good_check(run: Run, file: Path, tmp_path: Path) -> None:
    """As where the lake's disk isn't mounted."""
    ended = run("lake", "check", str(file))
    assert ended.code == EXIT_ERROR
    assert (
        ended.out.splitlines()[-1]
        == f"nothing is published in {tmp_path}/lake: is it the lake, and is its disk mounted?"
    )


def test_a_lake_without_snapshots_has_none_to_tell_of(run: Run, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CONNECTION, "mysql://u:p@127.0.0.1:1/")
    ended = run("snapshot", "status", str(file))
    assert (ended.code, ended.out, ended.err) == (0, "no snapshot was asked for\n", "")
    ended = run("snapshot", "status", str(file), "--json")
    assert (ended.code, json.loads(ended.out)) == (0, [])
    for word, told in (("pause", "paused"), ("resume", "resumed"), ("cancel", "cancelled")):
        assert run("snapshot", word, str(file)).out == f"{told}: no table\n"
    for word in ("run", "start"):
        ended = run("snapshot", word, str(file))
        assert ended.code == 0
        assert "0 tables are read" in ended.out
