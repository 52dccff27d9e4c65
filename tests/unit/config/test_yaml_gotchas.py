"""What YAML reads in another way than people write it is refused, with its line."""

from __future__ import annotations

import pytest

from tidegate.config import parse
from tidegate.errors import ConfigError

BASE = "pipeline: p\nlake: {path: x}\nsources: {s: {conn_id: c, flavour: mysql}}\ntables:\n  include: ['a.*']\n"


@pytest.mark.parametrize(
    ("more", "told"),
    [
        # Only the last one would count: the first rules would be passed over without a word.
        ("  masks: [{match: a.b, columns: [c], how: 'null'}]\n  masks: []\n", "p.yaml:7: masks stands in line 6"),
        ("  exclude: [a.b]\n  exclude: [a.c]\n", "p.yaml:7: exclude stands in line 6 already"),
        ("tables: {include: ['b.*']}\n", "p.yaml:6: tables stands in line 4 already"),
        ("maintain: &m {purge_days: 9, purge_days: 1}\n", "p.yaml:6: purge_days stands in line 6 already"),
        ("maintain: {keep_bronze_days: 030}\n", "p.yaml:6: 030 is a number for YAML, counted by eights"),
        ("capture:\n  run_for_seconds: 10:00\n", "p.yaml:7: 10:00 is a number for YAML, counted by sixties"),
        ("apply: {poll_seconds: 1:30.5}\n", "p.yaml:6: 1:30.5 is a number for YAML, counted by sixties"),
        ("maintain: {schedule: 2026-13-45}\n", "p.yaml:6: 2026-13-45 isn't the number or the date that YAML"),
        ("maintain: {keep_bronze_days: 0x_}\n", "p.yaml:6: 0x_ isn't the number or the date that YAML"),
        ("maintain: {keep_bronze_days: yes}\n", "p.yaml:6: maintain.keep_bronze_days: must be a number"),
        ("maintain: {purge_share: on}\n", "p.yaml:6: maintain.purge_share: must be a number"),
        ("xa: {orphan_timeout_seconds: .inf}\n", "p.yaml:6: xa.orphan_timeout_seconds: input must be a finite number"),
        ("apply: {parallel_tables: &a [*a]}\n", "p.yaml:6: apply.parallel_tables: input must be a valid integer"),
    ],
)
def test_it_is_one_error_with_its_line(more: str, told: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(BASE + more, where="p.yaml")
    assert str(refused.value).startswith(told)


def test_what_people_mean_so_is_left_to_them() -> None:
    """A merge may change what it takes in, an alias may come twice, and texts may look like numbers."""
    text = BASE.replace("include", "soft_delete: &own ['a.b']\n  history_by_window: *own\n  include")
    text += (
        "snapshot: &s {parallel: 2, chunk_rows: 1_000}\nverify: {chunk_rows: 0x64}\nmaintain: {schedule: '0 3 * * *'}\n"
    )
    found = parse(text, where="p.yaml")
    assert (found.tables.soft_delete, found.tables.history_by_window) == (("a.b",), ("a.b",))
    assert (found.snapshot.chunk_rows, found.verify.chunk_rows) == (1000, 100)
    merged = "sources:\n  s: &s {conn_id: c, flavour: mysql, semi_sync: on}\n  t: {<<: *s, conn_id: d}\n"
    sources = parse(BASE.replace("sources: {s: {conn_id: c, flavour: mysql}}\n", merged), where="p.yaml").sources
    assert [(name, source.traits.log) for name, source in sources.items()] == [("s", "conn_id c"), ("t", "conn_id d")]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("maintain: {schedule: every day}", "p.yaml:6: maintain.schedule: 'every day' is no preset and no cron"),
        ("maintain: {schedule: '@dayly'}", "p.yaml:6: maintain.schedule: '@dayly' is no preset and no cron"),
        ("maintain: {schedule: '0 25 * * *'}", "p.yaml:6: maintain.schedule: '0 25 * * *' is no preset and no cron"),
        ("maintain: {schedule: '0 0 30 2 *'}", "p.yaml:6: maintain.schedule: '0 0 30 2 *' is no preset and no cron"),
        ("maintain: {keep_bronze_days: 99999999}", "p.yaml:6: maintain.keep_bronze_days: input must be less than"),
        ("apply: {run_for_seconds: 99999999999999}", "p.yaml:6: apply.run_for_seconds: input must be less than"),
        ("capture: {run_for_seconds: 99999999999999}", "p.yaml:6: capture.run_for_seconds: input must be less than"),
    ],
)
def test_what_airflow_cant_make_a_dag_of_is_an_error_of_its_file_alone(more: str, told: str) -> None:
    """Otherwise it is one of dags/maintain.py or dags/apply.py, and Airflow schedules no pipeline's."""
    with pytest.raises(ConfigError) as refused:
        parse(BASE + more, where="p.yaml")
    assert str(refused.value).startswith(told)


@pytest.mark.parametrize(
    "schedule", ["", "@daily", "@once", "@midnight", "30 3 * * mon-fri", "*/5 * * * *", "0 3 * * SUN#2"]
)
def test_a_schedule_is_as_airflow_takes_it(schedule: str) -> None:
    assert parse(BASE + f"maintain: {{schedule: '{schedule}'}}", where="p.yaml").maintain.schedule == schedule
