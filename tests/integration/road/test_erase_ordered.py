"""An erasure as a person orders it: a dry run, the certificate, and what others may read of it.

In:  a real server, a lake with a person's rows; orders, refused ones too.
Out: a dry run changes no file but its records and leases. The certificate names files and versions. Nothing that is
     kept or said has a value of the condition.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration.road.test_renames import held, run
from tests.kit.road import Road
from tests.support.servers import FreshDatabase
from tests.support.stored import places_of
from tidegate.actions.desk import Desk
from tidegate.actions.erase_order import Done, carry_out
from tidegate.delta.log import DeltaLog
from tidegate.erase.erasure import Erased, Erasure, Order
from tidegate.erase.older_versions import OlderVersions
from tidegate.errors import LakeUnavailable, UsageError
from tidegate.lake.people import audit
from tidegate.lake.people.audit import Author
from tidegate.lake.storage.store_error import StoreError
from tidegate.local.server import Server
from tidegate.tables.actions_table import ActionOutcome

pytestmark = [pytest.mark.server, pytest.mark.spark]

PERSON = "ada-4711@example"


def ordered(road: Road, table: str, where: str, *, dry_run: bool) -> Done:
    desk = Desk(road.pipeline, road.lake, lambda _: pytest.fail("unasked"), Author("eve", "Airflow"))
    return carry_out(desk, Order(table, where, 5), lambda _: road.info, road.lines.append, dry_run=dry_run)


def files(lake: Path) -> dict[str, bytes]:
    """All but records of actions, and leases."""
    every = (path for path in lake.rglob("*") if path.is_file())
    own = {str(path.relative_to(lake)): path for path in every}
    return {
        name: path.read_bytes()
        for name, path in own.items()
        if not name.startswith(("control/actions", "control/leases"))
    }


def test_a_dry_run_says_what_would_go_and_a_certificate_what_went(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database, lake = fresh_database(mariadb), tmp_path / "lake"
    table = f"{database}.t"
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=f", changelog: ['{table}'], history: ['{table}']")
    road.capture()
    run(mariadb, database, f"""
        CREATE TABLE t (id INT PRIMARY KEY, mail VARCHAR(60), born DATE)
        INSERT INTO t VALUES (1, '{PERSON}', '2001-02-03'), (2, 'bob', NULL)
        UPDATE t SET born = NULL WHERE id = 1
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    where = f"mail = '{PERSON}'"
    with pytest.raises(UsageError, match="still has rows of the person"):
        ordered(road, table, where, dry_run=True)
    run(mariadb, database, "DELETE FROM t WHERE id = 1")
    road.capture()
    assert not held(road.apply(spark))

    before = files(lake)
    for odd in (f"born = '{PERSON}'", f"{PERSON} is who", f"mail = '{PERSON}", f"mail '{PERSON}'"):
        with pytest.raises(UsageError) as refused:
            ordered(road, table, odd, dry_run=False)
        assert PERSON not in str(refused.value)
    planned = ordered(road, table, where, dry_run=True)
    assert files(lake) == before
    assert planned.certificate == {}
    (line,) = planned.lines
    assert line.startswith(f"{table}: 1 key; 3 logged rows in 2 files of bronze; ")
    assert "rows of its past" in line

    done = ordered(road, table, where, dry_run=False)
    assert places_of(lake, PERSON) == set()
    (of_table,) = done.certificate["tables"]
    assert (done.certificate["by"], done.certificate["in"], of_table["table"]) == ("eve", "Airflow", table)
    assert (of_table["keys"], of_table["rows_of_the_log"], of_table["rows_of_the_past"]) == (1, 3, 2)
    assert all((lake / path).is_file() for path in of_table["files_written"])
    assert len(of_table["files_written"]) == 2
    versions = of_table["first_versions_without_them"]
    assert versions.keys() == {"bronze/segments", "bronze/chunks", f"silver/{database}/t", f"changelog/{database}/t"}
    assert versions[f"silver/{database}/t"] == road.lake.log(f"silver/{database}/t").state().version
    assert any("value log" in each for each in of_table["not_reached"])
    last = audit.actions(road.lake)[0]
    assert (last.outcome, last.action.author.user, last.action.subject) == (ActionOutcome.DONE, "eve", done.order)
    assert PERSON not in str(audit.actions(road.lake)) + str(done) + "".join(road.lines)
    road.assert_equal()


def test_a_lake_that_is_away_is_asked_again_and_takes_no_certificate(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the midst of it, a fault of the store isn't a fault of tidegate, which no task tries again. Behind it, another
    run would certify nothing.
    """
    database = fresh_database(mariadb)
    table, where = f"{database}.t", f"mail = '{PERSON}'"
    road = Road(mariadb, tmp_path, include=f"{database}.*")
    road.capture()
    run(mariadb, database, f"""
        CREATE TABLE t (id INT PRIMARY KEY, mail VARCHAR(60))
        INSERT INTO t VALUES (1, '{PERSON}'), (2, 'bob')
        DELETE FROM t WHERE id = 1
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))

    def away(*_: object, **__: object) -> None:
        raise StoreError(f"Generic S3 error: Error performing PUT http://store/x/{PERSON}.parquet in 180 s")

    with monkeypatch.context() as patched:
        patched.setattr(OlderVersions, "forget", away)
        with pytest.raises(LakeUnavailable, match="Error performing PUT") as met:
            ordered(road, table, where, dry_run=False)
    assert PERSON not in str(met.value)
    erased = Erasure.run

    def then_away(self: Erasure) -> list[Erased]:
        done = erased(self)
        monkeypatch.setattr(DeltaLog, "state", away)
        return done

    monkeypatch.setattr(Erasure, "run", then_away)
    done = ordered(road, table, where, dry_run=False)
    monkeypatch.undo()
    assert places_of(tmp_path / "lake", PERSON) == set()
    (of_table,) = done.certificate["tables"]
    assert of_table["keys"] == 1
    versions = of_table["first_versions_without_them"]
    assert versions["bronze/segments"] == road.lake.log("bronze/segments").state().version
