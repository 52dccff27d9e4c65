"""Random CREATE TABLE ... SELECT on a real server: a column's type is the server's own, or isn't claimed.

tests/support/seeds.py tells how other seeds are run; TIDEGATE_SELECT_STATEMENTS runs more statements.
"""

from __future__ import annotations

import os
import random
from typing import Any

import pymysql
import pytest

from tests.support.seeds import many, seed
from tests.support.servers import FreshDatabase
from tidegate.ddl_script.script import Script
from tidegate.ddl_script.shown_columns import shown_columns
from tidegate.local.server import Server
from tidegate.schema.ddl.tokens import Server as Flavour

pytestmark = pytest.mark.server

STATEMENTS = int(os.environ.get("TIDEGATE_SELECT_STATEMENTS") or many(120, 1500))
TABLE = """CREATE TABLE b (i int, n int not null, iu int unsigned, t tinyint, t1 tinyint(1),
    tu tinyint unsigned not null,
    s smallint, m mediumint, mu mediumint unsigned, l bigint, lu bigint unsigned not null, d decimal(10,3),
    dn decimal(10,3) unsigned not null, d0 decimal(1,0), d5 decimal(65,30), dz decimal(4,1) zerofill, f float,
    g double, gn double not null, f2 float(10,2), g2 double(20,4), da date, dt datetime, dt3 datetime(3) not null,
    tm time, tm6 time(6), ts timestamp null, ts2 timestamp(2) null, y year, c char(5), v varchar(10),
    vn varchar(300) not null, vb2 varchar(5) collate latin1_bin, u varchar(20) character set utf8mb4,
    un varchar(9) character set utf8mb4 not null, tt tinytext, tx text, mx mediumtext, lx longtext,
    u8 text character set utf8mb3, bi binary(4), vb varbinary(20), bl blob, mb mediumblob, tb tinyblob, b1 bit(1),
    b9 bit(9), e enum('a','bb','ccc'), st set('x','yy'), js json,
    uu uuid, i4 inet4, i6 inet6 not null) CHARACTER SET latin1"""
# fmt: off
COLUMNS = [
    "i", "n", "iu", "t", "t1", "tu", "s", "m", "mu", "l", "lu", "d", "dn", "d0", "d5", "dz", "f", "g", "gn", "f2", "g2",
    "da", "dt", "dt3", "tm", "tm6", "ts", "ts2", "y", "c", "v", "vn", "vb2", "u", "un", "tt", "tx", "mx", "lx", "u8",
    "bi", "vb", "bl", "mb", "tb", "b1", "b9", "e", "st", "js", "uu", "i4", "i6",
]
LITERALS = [
    "1", "9", "99", "0", "999999999", "1234567890", "12345678901234567890", "9223372036854775807",
    "18446744073709551615", "00012", "1.5", "0.05", ".5", "12.345", "-1", "-2.5", "1e0", "2.5e3", "'abc'", "''",
    "'2001-01-01'", "null", "true", "false", "0x41", "x'4142'", "now()", "now(2)", "current_date", "curtime()",
    "date'2001-01-01'", "time'10:20:30'", "time'10:20:30.12'",
    "'::1'", "'10.0.0.1'", "'10:11:12.5'", "'2001-02-03 04:05:06'", "_latin1'ab'",
    "0.1234567890123456789012345678901234567890123", "'123e4567-e89b-12d3-a456-426655440000'", "user()",
    "timestamp'2001-01-01 10:20:30'",
]
FUNCTIONS = [
    "abs", "ceil", "floor", "round", "sign", "sqrt", "length", "char_length", "ascii", "ord", "bit_length", "bit_count",
    "crc32", "to_days", "to_seconds", "year", "month", "day", "dayofyear", "weekday", "dayofweek", "hour", "minute",
    "second", "microsecond", "quarter", "week", "yearweek", "weekofyear", "isnull", "upper", "lower", "trim", "ltrim",
    "rtrim", "reverse", "date", "time", "timestamp", "last_day", "from_days", "exp", "ln", "sin", "atan", "coalesce",
    "concat", "hex", "unhex", "quote", "md5", "sha1", "degrees", "space", "inet_aton", "bin", "sleep", "soundex",
    "sec_to_time", "time_to_sec", "from_unixtime", "unix_timestamp",
]
AGGREGATES = ["max", "min", "sum", "avg", "count", "std", "variance", "bit_or"]
TYPES = [
    "signed", "unsigned", "date", "datetime", "datetime(3)", "time", "time(2)", "decimal", "decimal(10,2)",
    "decimal(5)", "double", "float", "int", "binary", "binary(5)", "char",
    "char(3)", "char(7) character set latin1", "nchar(2)", "uuid", "inet4", "inet6",
]
# fmt: on
# fmt: off
PARTS = [
    "year", "day", "hour", "microsecond", "year_month", "day_hour", "day_second", "day_microsecond", "week", "quarter",
    "minute_second", "hour_microsecond",
]
# fmt: on
SHAPES = [
    "({0}) {operator} ({1})",
    "({0}) {operator} ({1})",
    "{operand} {operator} {operand}",
    "({0}) {test} ({1})",
    "not ({0})",
    "-({0})",
    "~({0})",
    "{function}({0})",
    "{function}({0})",
    "{function}({0})",
    "round({0},{places})",
    "truncate({0},{places})",
    "cast({0} as {type})",
    "cast({operand} as {type})",
    "binary {operand}",
    "format({0},{places})",
    "repeat({0},{places})",
    "lpad({0},{places},{1})",
    "rpad({operand},5,'x')",
    "space({places})",
    "concat_ws({0},{1},{2})",
    "substr({0},{places})",
    "substr({0},{places},3)",
    "insert({0},1,2,{1})",
    "regexp_replace({operand},'a',{operand})",
    "regexp_substr({operand},{1})",
    "substring_index({0},'a',1)",
    "char({0},{1})",
    "conv({0},10,2)",
    "random_bytes({places})",
    "({0}) collate {collation}",
    "ifnull({operand},{operand})",
    "least({operand},{operand})",
    "coalesce({operand},{operand})",
    "cast({0} as {type})",
    "coalesce({0},{1})",
    "coalesce({0},{1},{2})",
    "ifnull({0},{1})",
    "if({2},{0},{1})",
    "nullif({0},{1})",
    "least({0},{1})",
    "greatest({0},{1},{2})",
    "case when {2} then {0} else {1} end",
    "case {2} when {0} then {1} end",
    "{0} + interval {count} {unit}",
    "concat({0},{1})",
    "left({0},3)",
    "right({0},3)",
    "@a:={0}",
    "locate({0},{1})",
    "extract({part} from {0})",
    "timestampdiff(day,{0},{1})",
    "convert({0} using {charset})",
    "datediff({0},{1})",
    "timestamp({0},{1})",
    "addtime({0},{1})",
    "timediff({0},{1})",
    "maketime({operand},{operand},{operand})",
    "convert_tz({0},'+00:00','+01:00')",
    "str_to_date({0},{format})",
    "time({operand})",
    "extract({part} from {operand})",
    "round({operand},{places})",
]  # fmt: skip


class Statements:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def operand(self) -> str:
        return self.random.choice(COLUMNS if self.random.random() < 0.7 else LITERALS)

    def expression(self, depth: int) -> str:
        if depth <= 0 or self.random.random() < 0.2:
            return self.operand()
        pick = self.random.choice
        return pick(SHAPES).format(
            *(self.expression(depth - 1) for _ in range(3)),
            operand=self.operand(),
            operator=pick(["+", "-", "*", "/", "%", "div", "mod"]),
            test=pick(["=", "<", "<=>", "!=", "and", "or", "xor", "&", "|", "<<", "like", "not like"]),
            function=pick(FUNCTIONS),
            places=pick(["0", "1", "2", "-1", "5"]),
            type=pick(TYPES),
            count=pick(["1", "n", "1.5"]),
            unit=pick(["day", "second", "month", "microsecond", "hour", "day_hour"]),
            part=pick(PARTS),
            format=pick(["'%Y-%m-%d'", "'%H:%i'", "'%d %H'", "'%Y %f'", "'%T.%f'", "v"]),
            collation=pick(["latin1_bin", "utf8mb4_bin", "utf8mb4_general_ci"]),
            charset=pick(["latin1", "utf8mb4", "utf8"]),
        )

    def statement(self) -> str:
        made = self.expression(self.random.choice([0, 1, 1, 1, 2, 2, 3]))
        aggregate = f"{self.random.choice(AGGREGATES)}({made})"
        shapes = [f"select {made} as a from b"] * 12 + [
            f"select {aggregate} as a from b",
            f"select {aggregate} as a from b",
            f"select {aggregate} over () as a from b",
            f"select distinct {made} as a from b",
            f"select {made} as a from b group by i",
            f"select {made} as a from b union select {self.expression(1)} from b",
            f"select {self.operand()} as a from b union all select {self.operand()} from b",
            f"select {self.operand()} as a from b union select {self.operand()} union select {self.operand()} from b",
            f"select {made} as a from (select b.* from b) as q",
        ]
        return f"CREATE TABLE x AS {self.random.choice(shapes)}"


@pytest.mark.long
def test_types_of_random_expressions_are_the_servers(mariadb: Server, fresh_database: FreshDatabase) -> None:
    chosen = seed()
    statements, session = Statements(chosen), _session(random.Random(chosen))
    counts = {"exact": 0, "unknown": 0, "refused": 0}
    wrong = []
    database = fresh_database(mariadb)
    with mariadb.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT VERSION()")
        version = str(cursor.fetchone()[0])
        cursor.execute(TABLE)
        for setting in session:
            cursor.execute(setting)
        for _ in range(STATEMENTS):
            sql = statements.statement()
            cursor.execute("DROP TABLE IF EXISTS x")
            try:
                cursor.execute(sql)
            except pymysql.err.MySQLError:
                counts["refused"] += 1
                continue
            ours, truth = _ours(database, version, [TABLE, *session, sql]), _truth(cursor, database)
            if ours is None:
                counts["unknown"] += 1
            elif ours == truth:
                counts["exact"] += 1
            else:
                wrong.append(f"{sql}\n  ours  {ours}\n  truth {truth}")
    print(counts, len(wrong), "wrong")
    assert not wrong, "\n".join(sorted(wrong, key=len)[:10])
    assert counts["exact"] > STATEMENTS * 0.3


def _session(pick: random.Random) -> list[str]:
    names = pick.choice(["utf8mb4", "utf8mb3", "latin1", "utf8mb4 COLLATE utf8mb4_bin"])
    return [f"SET NAMES {names}", f"SET sql_mode='{pick.choice(['', 'STRICT_TRANS_TABLES'])}'"]


def _ours(database: str, version: str, statements: list[str]) -> list[tuple[Any, ...]] | None:
    script = Script(database, version, "utf8mb4")
    for line, sql in enumerate(statements):
        script.run(line, sql)
    if (database, "x") in script.history.held:
        return None
    shown = shown_columns(script.tables()[f"{database}.x"], Flavour.of(version))
    return [tuple(column[field] for field in ("name", "type", "nullable", "charset", "collation")) for column in shown]


def _truth(cursor: Any, database: str) -> list[tuple[Any, ...]]:
    cursor.execute(
        "SELECT column_name, column_type, is_nullable, character_set_name, collation_name"
        " FROM information_schema.columns WHERE table_schema = %s AND table_name = 'x' ORDER BY ordinal_position",
        (database,),
    )
    return [(name, kind, nullable == "YES", charset, collation) for name, kind, nullable, charset, collation in cursor]
