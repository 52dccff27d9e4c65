"""A job that goes on for an hour ends when its pipeline file keeps other tables, and only then."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.home import PIPELINES_ENV
from tidegate.pipelines import FileWatch, load, read, with_settings

TEXT = "pipeline: p\nlake: {path: x}\nsources: {s: {conn_id: c, flavour: mysql}}\ntables: {include: ['a.*']}\n"


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        (TEXT, False),
        (TEXT + "# a remark\nsnapshot: {parallel: 2}\napply: {poll_seconds: 1}\n", False),
        (TEXT.replace("'a.*'", "'a.*', 'b.*'"), True),
        (TEXT + "ddl: {drop_column: ask}\n", True),
        (TEXT.replace("flavour: mysql", "flavour: mysql, required: true"), True),
        (TEXT.replace("include", "includ"), False),  # whoever is started next says what is wrong with it
        ("", False),
    ],
)
def test_only_another_selection_or_policy_ends_a_job(tmp_path: Path, text: str, changed: bool) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(TEXT)
    with_snapshot = FileWatch(file, load(file), "snapshot")
    watch = FileWatch(file, with_settings(load(file), "apply", ["mode=micro_batch"]))
    assert not watch.has_changed()
    beside = tmp_path / "new"
    beside.write_text(text)
    beside.rename(file)
    assert watch.has_changed() is changed
    assert with_snapshot.has_changed() is (changed or "snapshot" in text)
    file.unlink()
    assert not watch.has_changed()


def test_a_change_before_the_first_look_counts(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(TEXT)
    pipeline = load(file)
    file.write_text(TEXT.replace("'a.*'", "'b.*'"))
    assert FileWatch(file, pipeline).has_changed()


def test_a_file_that_is_no_text_is_no_pipeline_and_takes_no_other_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(TEXT)
    (tmp_path / "q.yaml").write_text(TEXT.replace("pipeline: p", "pipeline: q").replace("path: x", "path: y"))
    watch = FileWatch(file, load(file))
    file.write_bytes(b"# caf\xe9\n" + TEXT.encode())
    assert not watch.has_changed()
    monkeypatch.setenv(PIPELINES_ENV, str(tmp_path))
    good, (bad,) = read()
    assert [one.pipeline.pipeline for one in good] == ["q"]
    assert str(bad) == f"{file}: the pipeline file isn't UTF-8 at byte 5; write it as UTF-8"
