"""Silver's tables and columns have the comments of the source's own, or those of the pipeline file (tables.comments).

In:  real servers; comments in CREATE, ALTER, LIKE and RENAME, a snapshot, shards, modes, a changed pipeline file.
Out: silver's comments are those of the server's information_schema; no file of silver is written anew for one.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.integration.road.test_renames import held, run
from tests.kit.road import Road
from tests.kit.snapshots import Reading
from tests.support.servers import FreshDatabase
from tidegate import config, tables
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark]

COLUMNS = "id INT PRIMARY KEY COMMENT 'it''s the key', a INT COMMENT 'é \"x\" \\\\ y', b INT, KEY k (b) COMMENT 'no'"
Comments = tuple[str, dict[str, str]]


def in_silver(road: Road, database: str, table: str) -> Comments:
    delta = DeltaTable(road.lake.uri(tables.silver_path(database, table)))
    fields = [field for field in delta.schema().fields if not field.name.startswith("_tg_")]
    columns = {field.name: str((field.metadata or {}).get("comment", "")) for field in fields}
    return delta.metadata().description or "", columns


def at_source(server: Server, database: str, table: str) -> Comments:
    where = f"table_schema = '{database}' AND table_name = '{table}'"
    ((text,),) = server.query(f"SELECT table_comment FROM information_schema.tables WHERE {where}")
    rows = server.query(f"SELECT column_name, column_comment FROM information_schema.columns WHERE {where}")
    return str(text), {str(name): str(comment) for name, comment in rows}


@pytest.mark.parametrize(("any_server", "writer"), [("mariadb", "merge"), ("mysql9", "auto")], indirect=["any_server"])
def test_silver_has_the_comments_of_the_source(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, writer: str
) -> None:
    server, database = any_server, fresh_database(any_server)
    run(server, database, """
        CREATE TABLE u (id INT PRIMARY KEY COMMENT 'from the start', a INT) COMMENT='there before'
        INSERT INTO u VALUES (1, 1)
    """)  # fmt: skip
    modes = f", soft_delete: ['{database}.d'], history: ['{database}.h']"
    road = Road(server, tmp_path, include=f"{database}.*", extra=modes, apply=f", writer: {writer}")
    road.capture()
    for name in "tdh":
        run(server, database, f"""
            CREATE TABLE {name} ({COLUMNS}) ENGINE=InnoDB COMMENT 'orders, é' CHARSET=utf8mb4
            INSERT INTO {name} VALUES (1, 1, 1)
        """)  # fmt: skip
    run(server, database, """
        CREATE TABLE p (id INT PRIMARY KEY) COMMENT = 'parts' PARTITION BY RANGE (id) (PARTITION q VALUES LESS THAN (9))
        ALTER TABLE p ADD PARTITION (PARTITION r VALUES LESS THAN (19) COMMENT = 'one part')
        CREATE TABLE n (id INT PRIMARY KEY)
        INSERT INTO p VALUES (1)
        INSERT INTO n VALUES (1)
    """)  # fmt: skip
    names = "utdhpn"

    def check(names: str) -> None:
        road.capture()
        assert not held(road.apply(spark))
        road.assert_equal()
        for name in names:
            assert in_silver(road, database, name) == at_source(server, database, name), name

    road.capture()
    road.apply(spark)
    Reading(road, spark).run()
    check(names)
    for name in "utdh":
        run(server, database, f"ALTER TABLE {name} MODIFY a INT COMMENT 'another', COMMENT 'changed'")
    files = {name: DeltaTable(road.lake.uri(tables.silver_path(database, name))).file_uris() for name in "utdh"}
    check(names)
    for name in "utdh":
        assert DeltaTable(road.lake.uri(tables.silver_path(database, name))).file_uris() == files[name], name
        run(server, database, f"""
            ALTER TABLE {name} ADD INDEX i (a) COMMENT 'of an index'
            ALTER TABLE {name} ENGINE=InnoDB COMMENT=''
            UPDATE {name} SET a = 7
        """)  # fmt: skip
    run(server, database, """
        ALTER TABLE n COMMENT 'a first one', ADD COLUMN z INT DEFAULT 4 COMMENT 'more'
        ALTER TABLE p COMMENT 'last' PARTITION BY HASH (id) PARTITIONS 2
        CREATE TABLE l LIKE n
        ALTER TABLE l ALGORITHM=INPLACE, COMMENT 'like'
        INSERT INTO l VALUES (1, 1)
        RENAME TABLE n TO m
        ALTER TABLE m MODIFY z BIGINT COMMENT 'wider', RENAME TO o
        INSERT INTO o VALUES (5, 5)
    """)  # fmt: skip
    check("utdhplo")


def test_shards_share_a_comment(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    routes = f", routes: [{{match: '{database}.s_\\d', to: {database}.s}}]"
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=routes)
    road.capture()
    run(mariadb, database, """
        CREATE TABLE s_1 (id INT PRIMARY KEY)
        CREATE TABLE s_2 (id INT PRIMARY KEY COMMENT 'second') COMMENT 'from the second'
        INSERT INTO s_1 VALUES (1)
        INSERT INTO s_2 VALUES (1)
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    assert in_silver(road, database, "s") == ("from the second", {"id": "second"})
    run(mariadb, database, "ALTER TABLE s_1 MODIFY id INT COMMENT 'first', COMMENT 'from the first'")
    road.capture()
    assert not held(road.apply(spark))
    assert in_silver(road, database, "s") == ("from the first", {"id": "first"})


def test_the_pipeline_file_says_other_comments(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=", comments: []")
    plain = road.text
    road.capture()
    run(mariadb, database, """
        CREATE TABLE t (id INT PRIMARY KEY COMMENT 'key', A INT COMMENT 'a') COMMENT 'table'
        INSERT INTO t VALUES (1, 1)
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    number = 1

    def after(rules: str) -> Comments:
        nonlocal number
        number += 1
        road.file.write_text(plain.replace("comments: []", f"comments: [{rules}]"))
        road.pipeline = config.load(road.file)
        run(mariadb, database, f"INSERT INTO t VALUES ({number}, 1)")
        road.capture()
        assert not held(road.apply(spark))
        road.assert_equal()
        return in_silver(road, database, "t")

    match = f"match: '{database}.t'"
    assert after(f"{{{match}, columns: {{a: ours}}}}") == ("table", {"id": "key", "A": "ours"})
    assert after(f"{{{match}, comment: 'our table'}}") == ("our table", {"id": "key", "A": "a"})
    run(mariadb, database, "ALTER TABLE t MODIFY A INT COMMENT 'new', COMMENT 'newer'")
    several = f"{{{match}, comment: ''}}, {{{match}, comment: x, columns: {{id: ''}}}}"
    assert after(several) == ("", {"id": "", "A": "new"})
    assert after("") == ("newer", {"id": "key", "A": "new"})


def test_comments_too_long_for_the_server_are_as_it_cuts_them(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database, long = fresh_database(mariadb), "é x'' \\n`" * 1000
    road = Road(mariadb, tmp_path, include=f"{database}.*")
    road.capture()
    run(mariadb, database, f"""
        SET sql_mode = ''
        CREATE TABLE t (id INT PRIMARY KEY COMMENT '{long}', a INT) COMMENT '{long}' PARTITION BY HASH (id) PARTITIONS 2
        INSERT INTO t VALUES (1, 1)
        ALTER TABLE t MODIFY a INT COMMENT 'a{long}', COMMENT 'b{long}'
        UPDATE t SET a = 2
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    road.assert_equal()
    assert in_silver(road, database, "t") == at_source(mariadb, database, "t")
