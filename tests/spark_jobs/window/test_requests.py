"""Requests of apply to the lake's store, with thousands of tables: a look at each at its start, then what changes."""

from __future__ import annotations

import uuid
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.apply_steps.plan_window import next_window
from spark_jobs.window.standing import silver_guard
from tests.support.event_log import Log
from tests.support.seeds import many
from tests.support.steps import publish, to_decode
from tidegate import tables
from tidegate.delta.log import Change, DeltaLog
from tidegate.delta.object_names import commit_name
from tidegate.delta.stores.store import Entry, LocalStore
from tidegate.lake import control
from tidegate.lake.figures import status
from tidegate.lake.silver import as_published
from tidegate.lake.silver.silver_tables import create_silver
from tidegate.limits import SILVER_LISTED_TABLES, STORE_PAGE_FILES
from tidegate.merge.column import SilverColumn
from tidegate.merge.silver_sql import SilverShape
from tidegate.schema.model.columns import Column, Index, IndexKind, TableVersion, VersionStatus

TABLES = many(2_500, 10_000)
_NAMES = [f"t{number}" for number in range(TABLES)]
_OTHERS = 100  # of bronze and control tables, whatever the number of tables is
_NAMED = 20  # of the two that a window names
_REQUESTS = ("get", "stat", "create", "replace", "names", "changed_ms", "below")


class Requests:
    """By the folder that they are of."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._made: Counter[str] = Counter()
        for kind in _REQUESTS:
            patch.setattr(LocalStore, kind, self._counted(getattr(LocalStore, kind)))

    def _counted(self, ask: Callable[..., Any]) -> Callable[..., Any]:
        def counted(store: LocalStore, *given: Any) -> Any:
            self._made[store.where] += 1
            return ask(store, *given)

        return counted

    def taken(self) -> tuple[int, int]:
        """Since the last call: at silver's logs, and at all else."""
        made, self._made = self._made, Counter()
        silver = sum(count for where, count in made.items() if "/silver/" in where)
        return silver, sum(made.values()) - silver


def _version(name: str) -> TableVersion:
    return TableVersion(
        "one", "shop", name, 1, 1, "b.000001", 4, "create", "", (Column(1, "id", "int", nullable=False),), (1,),
        "utf8mb4", indexes=(Index("PRIMARY", IndexKind.PRIMARY, (1,)),), status=VersionStatus.ACTIVE,
    )  # fmt: skip


def _fill_silver(root: str, at_ts: int) -> None:
    """Each table as a window has written it once, with an id of its own."""
    first = Path(root, tables.silver_path("shop", _NAMES[0]), "_delta_log")
    log = DeltaLog(str(first.parent))
    create_silver(log, SilverShape((SilverColumn("id", "int"),), ("id",)))
    app_id = tables.app_id("road", f"shop.{_NAMES[0]}")
    state = log.commit(log.state(), Change([], "UPSERT", {app_id: at_ts}))
    texts = [(first / commit_name(version)).read_text() for version in range(state.version + 1)]
    for name in _NAMES[1:]:
        folder = Path(root, tables.silver_path("shop", name), "_delta_log")
        folder.mkdir(parents=True)
        for version, text in enumerate(texts):
            made = text.replace(app_id, tables.app_id("road", f"shop.{name}"))
            (folder / commit_name(version)).write_text(made.replace(state.table_id, str(uuid.uuid4())))


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Log:
    """Tables that have all, each with silver of its own."""
    made = Log(tmp_path_factory.mktemp("many"))
    control.append(made.lake, tables.SCHEMA_HISTORY, [_version(name).to_row() for name in _NAMES])
    made.level()
    app, window = made.first_window()
    app.claim()
    _fill_silver(made.lake.root, window.cut_ts)
    publish(app, to_decode(app, window), versions={f"shop.{name}": 1 for name in _NAMES})
    return made


def _page(store: LocalStore, behind: str) -> list[Entry]:
    """As an object store lists a folder and all below it."""
    names = _names(store.where)
    at = bisect_right(names, behind)
    page = []
    for name in names[at : at + STORE_PAGE_FILES]:
        facts = Path(store.where, name).stat()
        page.append(Entry(name, facts.st_size, facts.st_mtime_ns // 1_000_000))
    return page


@lru_cache(maxsize=1)
def _names(folder: str) -> list[str]:
    return sorted(str(file.relative_to(folder)) for file in Path(folder).rglob("*") if file.is_file())


@pytest.mark.parametrize("store", ["disk", "S3", "Azure"])
def test_thousands_of_tables_cost_a_look_each_at_a_start_and_a_window_only_what_it_names(
    log: Log, monkeypatch: pytest.MonkeyPatch, store: str
) -> None:
    if store != "disk":
        monkeypatch.setattr(as_published, "LocalStore", type(None))
    if store == "S3":
        monkeypatch.setattr(LocalStore, "below", _page)
        _names.cache_clear()
    requests = Requests(monkeypatch)
    app = log.started()
    app.claim()
    assert_few(requests, silver=0)
    silver_guard.ask_all(app)
    groups = TABLES // SILVER_LISTED_TABLES + 1  # each tries the store for a page, which a disk and Azure don't have
    assert_few(requests, silver={"disk": 2 * TABLES + groups, "Azure": TABLES + groups, "S3": 2 * groups}[store])

    app.index.refresh(app.cut_ts)
    assert next_window(app) is None
    assert_few(requests, silver=0)
    log.send("one", f"CREATE TABLE shop.on_{store} (id INT PRIMARY KEY)", (f"shop.on_{store}",))
    log.send("one", f"ALTER TABLE shop.t7 ADD {store} INT", ("shop.t7",))
    log.level()
    requests.taken()
    app.refresh()
    app.index.refresh(app.cut_ts)
    window = next_window(app)
    assert window is not None
    window = to_decode(app, window)
    assert f"shop.on_{store}" in window.tables, "it names this one"
    publish(app, window)
    assert_few(requests, silver=_NAMED)

    status.table_statuses(log.lake)
    status.sources(log.lake)
    assert_few(requests, silver=0)


def assert_few(requests: Requests, *, silver: int) -> None:
    of_silver, others = requests.taken()
    assert of_silver <= silver
    assert others <= _OTHERS
