"""Foreign keys' actions, engines that keep rows elsewhere, sequences: what a version keeps of them, what mends it."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from tidegate.schema.ddl.statement import DdlStatement, EventSaid
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.schema.model.hidden_changes import kept_elsewhere, unlogged_cascade
from tidegate.schema.model.server_settings import ServerSettings
from tidegate.schema.replay.history import DEFAULTS, SchemaHistory

MARIADB, MYSQL8, MYSQL9 = "11.4.5-MariaDB-log", "8.0.44", "9.7.4"
ATOMIC = EventSaid(atomic=True)


class Log:
    """Statements of a server, replayed."""

    def __init__(self, version: str = MARIADB, settings: ServerSettings | None = None) -> None:
        self.history = SchemaHistory("one")
        self.version = version
        self.ts = itertools.count(10, 10)
        row = TableVersion("one", "", "", 1, 0, "b.1", 4, DEFAULTS, "", (), (), "utf8mb4", settings=settings)
        self.history.add([replace(row, collation="utf8mb4_general_ci")])

    def run(self, *sql: str, said: EventSaid = ATOMIC, database: str = "db") -> list[TableVersion]:
        made: list[TableVersion] = []
        for text in sql:
            ts = next(self.ts)
            made = self.history.replay(
                DdlStatement(text, database, 0, ts, "b.1", ts, 0, "utf8mb4", self.version, said=said)
            )
        return made

    def last(self, table: str) -> TableVersion:
        """As a row of schema_history brings it back."""
        return TableVersion.from_row(self.history.versions("db", table)[-1].to_row())


PARENT = "CREATE TABLE p (id INT PRIMARY KEY)"


@pytest.mark.parametrize(
    ("child", "told"),
    [
        ("CREATE TABLE c (id INT, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)", "c_ibfk_1 to db.p (ON"),
        ("CREATE TABLE c (p INT, CONSTRAINT fk FOREIGN KEY k (p) REFERENCES p (id) ON UPDATE SET NULL)", "fk to db.p"),
        ("CREATE TABLE c (p INT REFERENCES `o`.p (id) MATCH FULL ON DELETE SET DEFAULT)", "c_ibfk_1 to o.p (ON DELETE"),
        ("CREATE TABLE c (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES c (id) ON DELETE CASCADE)", "to db.c"),
        ("CREATE TABLE c (p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE RESTRICT ON UPDATE NO ACTION)", ""),
        ("CREATE TABLE c (p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE) ENGINE=MyISAM", ""),
        ("CREATE TABLE c (p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE) ENGINE NoSuchEngine", "db.p"),
    ],
)
def test_a_child_whose_rows_change_unseen_is_known_by_its_constraint(child: str, told: str) -> None:
    log = Log()
    log.run(PARENT, child)
    found = unlogged_cascade(log.last("c"))
    assert told in found
    assert bool(told) == bool(found)
    later = Log(MYSQL9)
    later.run(PARENT, child)
    assert not unlogged_cascade(later.last("c")), "MySQL 9.6 and later log what a cascade does"
    assert bool(told) == bool(unlogged_cascade(_of(MYSQL8, ServerSettings(), child)))
    assert bool(told) == bool(unlogged_cascade(_of(MYSQL9, ServerSettings(native_keys=True), child)))


def _of(version: str, settings: ServerSettings, child: str) -> TableVersion:
    # MySQL 8 takes REFERENCES behind a column and forgets it.
    log = Log(version, settings)
    log.run(PARENT, child.replace("p INT REFERENCES", "p INT, FOREIGN KEY (p) REFERENCES"))
    return log.last("c")


def test_behind_an_accepted_gap_only_the_event_proves_that_if_not_exists_made_a_table() -> None:
    log = Log(MYSQL9, ServerSettings(kept=("*.*",)))
    log.run("CREATE DATABASE db", "CREATE TABLE gone (a INT)", "DROP TABLE gone")
    (said,) = log.history.pass_gap(next(log.ts), "b.2", 4)
    assert log.history.pass_gap(said.commit_ts, "b.2", 4) == [], "once"
    assert TableVersion.from_row(said.to_row()) == said, "as a row of schema_history"
    for name in ("gone", "came"):
        log.run(f"CREATE TABLE IF NOT EXISTS {name} (a INT)", said=EventSaid())
        assert log.last(name).status is VersionStatus.UNPROVEN
    log.run("CREATE TABLE IF NOT EXISTS made (a INT)", "DROP TABLE made")
    assert log.run("CREATE TABLE IF NOT EXISTS made (a INT)", said=EventSaid())[0].status is VersionStatus.ACTIVE


def test_constraints_come_and_go_by_alter_and_stay_over_renames() -> None:
    log = Log()
    log.run(PARENT, "CREATE TABLE c (id INT PRIMARY KEY, p INT, q INT)")
    log.run("ALTER TABLE c ADD FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE, ADD x INT")
    log.run("ALTER TABLE c ADD CONSTRAINT FOREIGN KEY mine (q) REFERENCES p (id) ON UPDATE CASCADE")
    assert [key.name for key in log.last("c").foreign_keys] == ["c_ibfk_1", "mine"]
    log.run("RENAME TABLE c TO d", "ALTER TABLE d RENAME TO c2")
    assert [key.name for key in log.last("c2").foreign_keys] == ["c2_ibfk_1", "mine"]
    log.run("CREATE TABLE e LIKE c2")
    assert not log.last("e").foreign_keys
    log.run("ALTER TABLE c2 DROP FOREIGN KEY IF EXISTS nosuch, DROP FOREIGN KEY `C2_IBFK_1`")
    assert unlogged_cascade(log.last("c2"))
    log.run("ALTER TABLE c2 DROP CONSTRAINT mine", "TRUNCATE c2")
    assert (log.last("c2").kind, unlogged_cascade(log.last("c2"))) == ("truncate", "")


def test_after_an_upgrade_truncate_shows_that_the_server_logs_cascades_now() -> None:
    log = Log(MYSQL8)
    log.run(PARENT, "CREATE TABLE c (p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)")
    log.version = MYSQL9
    assert unlogged_cascade(log.last("c"))
    log.run("TRUNCATE TABLE c")
    assert not unlogged_cascade(log.last("c"))


def test_tables_that_a_merge_table_names_before_they_are_made_are_under_it() -> None:
    log = Log()
    log.run("CREATE TABLE m (a INT) ENGINE=MERGE UNION=(t1, t2, t3)", "CREATE TABLE t1 (a INT) ENGINE=MyISAM")
    log.run("CREATE TABLE other (a INT) ENGINE=MyISAM", "CREATE TABLE t2 LIKE other", "RENAME TABLE other TO t3")
    for name in ("t1", "t2", "t3"):
        assert "MERGE table db.m" in kept_elsewhere(log.last(name)), name
    log.run("DROP TABLE m", "DROP TABLE t1", "CREATE TABLE t1 (a INT)")
    assert not kept_elsewhere(log.last("t1"))


def test_engines_that_keep_rows_elsewhere_are_named() -> None:
    log = Log()
    log.run("CREATE TABLE t1 (a INT) ENGINE=MyISAM", "CREATE TABLE m (a INT) ENGINE=MRG_MyISAM UNION=(t1)")
    assert "MRG_MYISAM" in kept_elsewhere(log.last("m"))
    assert "MERGE table db.m" in kept_elsewhere(log.last("t1"))
    log.run("TRUNCATE t1")
    assert kept_elsewhere(log.last("t1")), "the MERGE table is there still"
    log.run("DROP TABLE m", "TRUNCATE t1")
    assert not kept_elsewhere(log.last("t1"))
    log.run("CREATE TABLE b (a INT PRIMARY KEY)", "ALTER TABLE b ENGINE=BLACKHOLE")
    assert "keeps none" in kept_elsewhere(log.last("b"))
    log.run("ALTER TABLE b ENGINE = InnoDB, ADD c INT")
    assert not kept_elsewhere(log.last("b"))
    log.run("CREATE TABLE f (a INT) ENGINE=FEDERATED CONNECTION='mysql://u@h/d/t'")
    assert kept_elsewhere(log.last("f"))
    blackhole = Log(settings=ServerSettings(engine="blackhole"))
    blackhole.run("CREATE TABLE b (a INT PRIMARY KEY)")
    assert kept_elsewhere(blackhole.last("b"))


def test_a_sequence_is_no_table_under_any_of_its_names() -> None:
    log = Log()
    log.run(
        "CREATE SEQUENCE s", "RENAME TABLE s TO s2", "CREATE TABLE s3 (a BIGINT) SEQUENCE=1", "CREATE TABLE t (a INT)"
    )
    assert {n for n in ("s", "s2", "s3", "t") if log.history.is_sequence(("db", n))} == {"s", "s2", "s3"}
    log.run("DROP SEQUENCE s2")
    assert log.last("s2").status is VersionStatus.DROPPED
    log.run("CREATE TABLE s2 (a INT)")
    assert not log.history.is_sequence(("db", "s2"))


@pytest.mark.parametrize(
    ("version", "said", "settings", "first", "known"),
    [
        (MYSQL9, EventSaid(atomic=True), None, "", True),
        (MYSQL9, EventSaid(), None, "", False),
        (MYSQL9, EventSaid(), ServerSettings(kept=("db.*",)), "", True),
        (MYSQL9, EventSaid(), ServerSettings(kept=("*.*",), left_out=("db.t",)), "", False),
        (MYSQL9, EventSaid(), None, "CREATE DATABASE db", True),
        (MYSQL9, EventSaid(), None, "CREATE DATABASE IF NOT EXISTS db", False),
        (MYSQL9, EventSaid(), None, "CREATE TABLE t (a INT); DROP TABLE t", True),
        ("10.5.9-MariaDB", EventSaid(), None, "", False),
        (MARIADB, EventSaid(), None, "", True),
    ],
)
def test_if_not_exists_of_an_unknown_table_is_believed_only_with_a_proof(
    version: str, said: EventSaid, settings: ServerSettings | None, first: str, known: bool
) -> None:
    log = Log(version, settings)
    log.run("CREATE TABLE source (a INT)", *filter(None, first.split("; ")), said=EventSaid())
    for sql in ("CREATE TABLE IF NOT EXISTS t (a INT)", "CREATE TABLE IF NOT EXISTS t2 LIKE source"):
        log.run(sql, said=said)
    wanted = VersionStatus.ACTIVE if known else VersionStatus.UNPROVEN
    assert log.last("t").status is wanted
    if "db.t" not in (settings.left_out if settings else ()) and "DROP" not in first:
        assert log.last("t2").status is wanted


def test_names_are_folded_where_the_server_folds_them() -> None:
    log = Log(settings=ServerSettings(folds_names=True))
    log.run("CREATE TABLE Orders (Id INT PRIMARY KEY)", database="DB")
    log.run("ALTER TABLE ORDERS ADD Child INT", "RENAME TABLE `db`.oRders TO Db.ÖRDERS")
    assert [c.name for c in log.last("örders").columns] == ["Id", "Child"]
    assert log.run("TRUNCATE TABLE ÖrderS")[0].table == "örders"
    log.run("ALTER DATABASE DB CHARACTER SET latin1", "DROP DATABASE dB")
    assert log.last("örders").status is VersionStatus.DROPPED
    assert {name for name in log.history.tables() if name != name_in_lower(name)} == set()


def name_in_lower(name: tuple[str, str]) -> tuple[str, str]:
    return name[0].lower(), name[1].lower()


def test_the_first_timestamp_is_the_time_of_the_change_where_the_session_says_so() -> None:
    off, on = EventSaid(explicit_timestamps=False), EventSaid(explicit_timestamps=True)
    for version, loose, strict in (
        (MYSQL9, off, on),
        (MARIADB, EventSaid(mariadb_explicit=False), EventSaid(mariadb_explicit=True)),
    ):
        log = Log(version)
        log.run("CREATE TABLE t (id INT PRIMARY KEY)")
        log.run("ALTER TABLE t ADD a TIMESTAMP", said=strict)
        log.run("CREATE TABLE u (id INT PRIMARY KEY)", "ALTER TABLE u ADD a TIMESTAMP(3)", said=loose)
        log.run("ALTER TABLE u ADD b TIMESTAMP, ADD c TIMESTAMP NULL", said=loose)
        assert [(c.nullable, c.default) for c in log.last("t").columns[1:]] == [(True, None)]
        assert [(c.name, c.nullable, c.default) for c in log.last("u").columns[1:]] == [
            ("a", False, "CURRENT_TIMESTAMP(3)"),
            ("b", False, None),
            ("c", True, None),
        ]


def test_a_database_gets_the_character_set_that_the_event_names() -> None:
    log = Log()
    log.run("CREATE DATABASE other", said=EventSaid(database_charset="latin1"))
    log.run("CREATE TABLE other.t (a CHAR(3))")
    assert log.history.versions("other", "t")[-1].columns[0].charset == "latin1"


def test_what_may_be_about_a_temporary_table_holds_the_table_of_that_name() -> None:
    bound = EventSaid(thread_specific=True)
    log = Log()
    log.run("CREATE TABLE t (a INT)", "CREATE TEMPORARY TABLE t (x INT)")
    with pytest.raises(Exception, match="may be about a temporary table"):
        log.run("TRUNCATE TABLE t", said=bound)
    mysql = Log(MYSQL9)
    mysql.run("CREATE TABLE t (a INT)")
    mysql.run("TRUNCATE TABLE t", said=EventSaid(thread_specific=True, atomic=True))
    assert mysql.last("t").kind == "truncate", "a procedure that used a temporary table"
    with pytest.raises(Exception, match="may be about a temporary table"):
        mysql.run("ALTER TABLE t ADD b INT", said=bound)
