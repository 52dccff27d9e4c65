"""Settings on a job's command line, on top of the pipeline file's: as a person writes them, and as a form sends them.

In:  a pipeline file, values by key.
Out: what a job runs with.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from pydantic import BaseModel

from spark_jobs.session.job import configured
from tidegate import pipelines
from tidegate.config import Apply, Capture, Maintain, Pipeline
from tidegate.errors import ConfigError

BASE = "pipeline: p\nlake: {path: x}\nsources: {s: {conn_id: c, flavour: mysql}}\ntables: {include: ['d.*']}\n"
TEXT = BASE + "apply: {poll_seconds: 3, parallel_tables: 7}\n"
PARTS: dict[str, type[BaseModel]] = {"capture": Capture, "apply": Apply, "maintain": Maintain}
# A value of each key that may be nothing, other than its default. A new key is added here.
VALUES: dict[str, Any] = {
    "capture.land_seconds": 0.5,
    "capture.value_log_path": "/spool",
    "capture.value_log_bytes_max": 1 << 30,
    "apply.stalled_seconds": 1200,
    "apply.driver_decode_bytes": 1 << 20,
    "maintain.keep_bronze_days": 7,
    "maintain.purge_days": 9,
    "maintain.keep_records_days": 8,
    "maintain.keep_changelog_days": 9,
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "p.yaml").write_text(TEXT)
    return tmp_path / "p.yaml"


def nullable() -> Iterator[str]:
    for part, model in PARTS.items():
        for name, field in model.model_fields.items():
            if type(None) in get_args(field.annotation):
                yield f"{part}.{name}"


def as_a_job_reads_it(file: Path, part: str, form: dict[str, Any]) -> Any:
    """What the form says, sent as arguments, and read by the job beside the same file."""
    before = getattr(pipelines.load(file), part)
    chosen = pipelines.overlay(before, form, where="run", what="param", remedy="-")
    arguments = pipelines.encoded(chosen, before)
    assert set(arguments[::2]) <= {"--set"}
    found: Pipeline = configured(file, part, arguments[1::2])
    assert getattr(found, part) == chosen
    return getattr(found, part)


def test_a_setting_wins_over_the_file_and_the_last_one_counts(file: Path) -> None:
    found = configured(file, "apply", ["poll_seconds=0.5", "run_for_seconds=60", "run_for_seconds=70"]).apply
    assert (found.poll_seconds, found.run_for_seconds, found.parallel_tables) == (0.5, 70, 7)
    assert configured(file, "maintain", ["purge_share=0.5"]).maintain.purge_share == 0.5
    assert configured(file, "apply", ["writer=merge"]).apply.writer == "merge", "what isn't JSON is the text itself"


@pytest.mark.parametrize("setting", ["poll_seconds", "poll_seconds=soon", "pol_seconds=1"])
def test_a_setting_that_does_not_fit_is_refused(file: Path, setting: str) -> None:
    with pytest.raises(ConfigError, match="command line"):
        configured(file, "apply", [setting])


@pytest.mark.parametrize("key", [*nullable()])
def test_every_key_that_may_be_nothing_is_sent_as_nothing_and_as_a_value(tmp_path: Path, key: str) -> None:
    part, name = key.split(".")
    with_value, with_nothing = tmp_path / "value.yaml", tmp_path / "nothing.yaml"
    with_value.write_text(BASE + yaml.safe_dump({part: {name: VALUES[key]}}))
    with_nothing.write_text(BASE + yaml.safe_dump({part: {name: None}}))
    assert getattr(as_a_job_reads_it(with_value, part, {name: None}), name) is None
    assert getattr(as_a_job_reads_it(with_nothing, part, {name: VALUES[key]}), name) == VALUES[key]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("driver_memory", "2g"),
        ("zero_dates", "error"),
        ("zero_dates", "null"),
        ("spark_conf", {"spark.a": "null", "spark.b": "1"}),
        ("spark_conn_id", "null"),
        ("spark_conn_id", "7"),
        ("mode", "micro_batch"),
    ],
)
def test_text_that_looks_like_another_value_arrives_as_text(file: Path, key: str, value: Any) -> None:
    assert as_a_job_reads_it(file, "apply", {key: value}).model_dump(mode="json")[key] == value
