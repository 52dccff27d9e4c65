"""Finding and loading pipeline files.

In:  folders of files, and where a command was started.
Out: the file that a name means; the same paths from wherever.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from tidegate import config, pipelines
from tidegate.capture.value_log.folder import value_log_folder
from tidegate.errors import UsageError
from tidegate.lake.storage import storage_options
from tidegate.patience import Patience

TEXT = """pipeline: {name}
lake: {{path: {lake}}}
sources: {{s: {{conn_id: c, flavour: mysql}}}}
tables: {{include: ['d.*']}}
"""
TEXT_OF_PUMP = "pipeline: p\nlake: {{path: lake}}\nsources: {{pump: {pump}}}\ntables: {{include: ['d.*']}}\n"


def write(folder: Path, name: str, lake: str, more: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.yaml").write_text(TEXT.format(name=name, lake=lake) + more)
    return folder / f"{name}.yaml"


def test_a_name_is_looked_for_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEGATE_HOME", str(tmp_path))
    usual = write(tmp_path / "include" / "pipelines", "shop", "a")
    assert pipelines.find("shop") == usual
    other = write(tmp_path / "elsewhere", "shop", "b")
    monkeypatch.setenv("TIDEGATE_PIPELINES", str(tmp_path / "elsewhere"))
    assert pipelines.find("shop") == other
    assert pipelines.find(str(usual)) == usual
    with pytest.raises(UsageError, match="did you mean shop"):
        pipelines.find("shap")
    with pytest.raises(UsageError, match="no such pipeline file"):
        pipelines.find("none/of/these")


def test_relative_paths_are_the_projects_wherever_a_command_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEGATE_HOME", str(tmp_path / "project"))
    file = write(tmp_path, "p", "lakes/p", "capture: {value_log_path: spool}\n")
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    pipeline = pipelines.load(file)
    assert pipeline.lake.path == str(tmp_path / "project" / "lakes" / "p")
    assert value_log_folder(pipeline, "s", Path("unused")) == tmp_path / "project" / "spool" / "s"
    assert pipelines.resolved(pipeline) == pipeline


def test_a_lake_whose_mount_hangs_holds_up_no_other_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stat of a dead server's mount never comes back, and all files are read together."""
    real, back = Path.resolve, threading.Event()
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")

    def resolve(path: Path, strict: bool = False) -> Path:
        if tmp_path / "link" in path.parents:
            back.wait(60)
        return real(path, strict)

    monkeypatch.setenv("TIDEGATE_PIPELINES", str(tmp_path / "pipelines"))
    monkeypatch.setattr(storage_options, "_PATIENCE", Patience(0.2))
    write(tmp_path / "pipelines", "dead", str(tmp_path / "link" / "seen"))
    pipelines.read()
    write(tmp_path / "pipelines", "alive", str(tmp_path / "other"))
    write(tmp_path / "pipelines", "new", str(tmp_path / "link" / "unseen"))
    monkeypatch.setattr(Path, "resolve", resolve)
    began = time.monotonic()
    lakes = {file.pipeline.pipeline: file.pipeline.lake.path for file in pipelines.good_files()}
    assert time.monotonic() - began < 5
    back.set()
    known, written = str(tmp_path / "real" / "seen"), str(tmp_path / "link" / "unseen")
    assert lakes == {"dead": known, "alive": str(tmp_path / "other"), "new": written}


def test_a_pumps_certificates_are_the_projects_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEGATE_HOME", str(tmp_path / "project"))
    pump = (
        '{conn_id: t, flavour: tidb, listen: ["0.0.0.0:8250"], tls_certificate: tls/pump.pem, tls_key: /etc/pump.key}'
    )
    source = pipelines.resolved(config.parse(TEXT_OF_PUMP.format(pump=pump), where="p.yaml")).sources["pump"]
    assert isinstance(source, config.TidbSource)
    assert source.tls_certificate == tmp_path / "project" / "tls" / "pump.pem"
    assert (source.tls_key, source.tls_ca) == (Path("/etc/pump.key"), None)


def test_two_files_of_one_lake_are_refused_however_its_path_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEGATE_HOME", str(tmp_path))
    monkeypatch.setenv("TIDEGATE_PIPELINES", str(tmp_path / "files"))
    write(tmp_path / "files", "a", "lakes/one")
    write(tmp_path / "files", "b", f"{tmp_path}/lakes/one/")
    write(tmp_path / "files", "c", "lakes/two")
    good, broken = pipelines.read()
    assert [file.pipeline.pipeline for file in good] == ["a", "c"]
    (error,) = broken
    assert "is already the lake of a.yaml" in str(error)


FEED = "sources: {s: {flavour: ticdc, path: feed, protocol: csv, time_zone: Europe/Berlim}}"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("sources: {s: {conn_id: c, flavour: mysql}}", FEED), "time zone 'Europe/Berlim' isn't known"),
        (("d.*", "d.a{99999999999}"), "the repetition number is too large"),
        (("d.*", "d." + "(" * 5000 + ")" * 5000), "recursion"),
        (("lakes/bad", '"lakes/\\0"'), "is no path of a folder"),
        (("lakes/bad", "loop/lake"), "is no path of a folder: Symlink loop"),
        (("lakes/bad", "2026-02-30"), "bad.yaml:2: 2026-02-30"),
    ],
    ids=range(6),
)
def test_a_file_that_is_wrong_in_any_way_takes_no_other_files_dags_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: tuple[str, str], told: str
) -> None:
    monkeypatch.setenv("TIDEGATE_HOME", str(tmp_path))
    monkeypatch.setenv("TIDEGATE_PIPELINES", str(tmp_path / "files"))
    (tmp_path / "loop").symlink_to("loop")
    bad = write(tmp_path / "files", "bad", "lakes/bad")
    bad.write_text(bad.read_text().replace(*change))
    write(tmp_path / "files", "good", "lakes/good")
    good, (error,) = pipelines.read()
    assert [file.pipeline.pipeline for file in good] == ["good"]
    assert "bad.yaml" in str(error)
    assert told in str(error)


def test_a_file_whose_name_nobody_reads_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would have no DAG, and nobody would say why."""
    monkeypatch.setenv("TIDEGATE_PIPELINES", str(tmp_path))
    write(tmp_path, "shop", "lakes/shop").rename(tmp_path / "shop.yml")
    good, (error,) = pipelines.read()
    assert not good
    assert str(error) == f"{tmp_path}/shop.yml: a pipeline file's name ends with .yaml; rename it to shop.yaml"
    with pytest.raises(UsageError, match=r"did you mean .*shop\.yml"):
        pipelines.find("shop")


def test_a_folder_that_isnt_there_is_an_error_and_not_no_pipelines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEGATE_PIPELINES", str(tmp_path / "pipelnes"))
    good, (error,) = pipelines.read()
    assert not good
    assert str(error).startswith(
        f"{tmp_path}/pipelnes: no folder of pipeline files is here; make it, or correct TIDEGATE_P"
    )
