"""Random DDL about what a column says of itself: defaults, ON UPDATE, generated columns, queries, versioning.

In:  a seeded random.Random, the flavour of the server.
Out: statements; a server refuses some of them, which is fine.
"""

from __future__ import annotations

from tests.support.random_ddl import NAMES, TYPES, RandomDdl

DEFAULTS = [
    "0", "1", "-7", "5.5", "1e2", "'a'", "'x y'", "'it''s'", "''", "NULL", "'2020-1-2'", "'2020-01-02 3:4:5.678'",
    "'1:2:3'", "CURRENT_TIMESTAMP", "NOW(3)", "NOW() ON UPDATE NOW()", "CURRENT_TIMESTAMP(6) ON UPDATE NOW(6)",
    "b'101'", "x'41'", "0x4142", "TRUE", "20200102", "(1 + 2)", "(UUID())", "(concat('a', 'b'))", "2020", "'b''c'",
    "'y,x'", "'{}'", "0.00", "99", "'12'", "(3)", "('q')", "LOCALTIMESTAMP", "DATE '2021-02-03'",
]  # fmt: skip
EXPRESSIONS = [
    "{0} + 1", "{0} * ({1} - 2)", "concat({0}, '-', {1})", "coalesce({0}, {1})", "if({0} > 1, {0}, {1})", "{0} = {1}",
    "upper({0})", "length({0})", "substring({0}, 1, 2)", "{0} in (1, 2)", "{0} is null", "{0} between 1 and {1}",
    "case when {0} = 1 then 'x' else {1} end", "-{0}", "({0} + {1}) * 2", "ifnull({0}, 0)", "mod({0}, 3)", "{0} div 2",
    "date_add({0}, interval 1 day)", "{0} and {1}", "{0} or {1} > 2", "nullif({0}, {1})", "left({0}, 2)", "1",
    "{0} <> {1}", "round({0}, 2)", "greatest({0}, {1})", "{0} like 'a%'", "{0} - {1} - 1", "{0} / ({1} * 2)",
]  # fmt: skip
LITERALS = ["1", "0", "12345", "1.50", ".5", "NULL", "1e3", "0x4142", "9999999999", "TRUE", "count(*)", "1234567890"]
MARIADB_TYPES = ["INET6", "UUID", "INET4", "DECIMAL(8,3) ZEROFILL", "FLOAT(7,2) ZEROFILL", "mariadb_schema.DATE"]


class RandomDefinitions(RandomDdl):
    """A source of statements; the same seed gives the same ones."""

    def __init__(self, seed: int, *, mariadb: bool) -> None:
        super().__init__(seed)
        self.mariadb = mariadb
        self.types = TYPES + (MARIADB_TYPES if mariadb else [])

    def statement(self) -> str:
        pick = self.random.random()
        if pick < 0.12:
            return self._query()
        if pick < 0.16:
            return self._temporary()
        if pick < 0.22 and self.mariadb:
            return self._mariadb_only()
        return super().statement()

    def _column(self, name: str | None = None) -> str:
        words = [name or self._name(), self.random.choice(self.types)]
        words.append(self.random.choice(["", "", "NULL", "NOT NULL"]))
        if self.random.random() < 0.55:
            words.append(f"DEFAULT {self.random.choice(DEFAULTS)}")
        words += [self._maybe("UNIQUE", 0.05), self._maybe("INVISIBLE", 0.06), self._maybe("AUTO_INCREMENT", 0.04)]
        return " ".join(word for word in words if word)

    def _generated(self) -> str:
        expression = self.random.choice(EXPRESSIONS).format(self._name(), self._name())
        kind = self.random.choice(["INT", "BIGINT", "VARCHAR(50)", "DATE", "DOUBLE"])
        how = self.random.choice(["VIRTUAL", "STORED", ""])
        return f"g{self._digit()} {kind} {self._maybe('GENERATED ALWAYS')} AS ({expression}) {how}"

    def _query(self) -> str:
        items = self.random.choice(
            [
                "*",
                f"{self._name()}",
                f"{self._name()} AS z, {self._name()}",
                f"{self.random.choice(LITERALS)} AS l, {self._name()}",
                "x.*",
                f"x.{self._name()}, y.{self._name()} k",
                f"DISTINCT {self._name()}",
                f"{self._name().upper()}",
            ]
        )
        joined = f"{self._table()} x {self.random.choice(['JOIN', 'LEFT JOIN', 'RIGHT JOIN', ','])} {self._table()} y"
        source = joined if "." in items else self._table()
        if "JOIN" in source:
            source += " ON 1 = 1"
        defined = self.random.choice(["", "", f"({self._column()})", f"(PRIMARY KEY ({self._name()}))"])
        tail = self.random.choice(["", " WHERE 1 = 0", " LIMIT 0", " ORDER BY 1"])
        how = self._maybe("OR REPLACE ", 0.3) if self.mariadb else ""
        unless = self._maybe("IF NOT EXISTS")
        return f"CREATE {how}TABLE {unless} {self._table()} {defined} AS SELECT {items} FROM {source}{tail}"

    def _temporary(self) -> str:
        return self.random.choice(
            [
                f"CREATE TEMPORARY TABLE {self._table()} (tmp INT)",
                f"DROP TEMPORARY TABLE IF EXISTS {self._table()}",
                f"DROP TABLE IF EXISTS {self._table()}, {self._table()}",
                f"DROP TEMPORARY TABLE IF EXISTS {self._table()}",
            ]
        )

    def _mariadb_only(self) -> str:
        name, table = self._name(), self._table()
        versioned = f"(a INT PRIMARY KEY, {self._column('b')}, s TIMESTAMP(6) AS ROW START, e TIMESTAMP(6) AS ROW END"
        versioned += f" {self._maybe('INVISIBLE')}, PERIOD FOR SYSTEM_TIME (s, e)) WITH SYSTEM VERSIONING"
        parts = "(PARTITION p VALUES IN (1), PARTITION q VALUES IN (2))"
        first, second = NAMES[:2]
        return self.random.choice(
            [
                f"ALTER TABLE {table} ADD SYSTEM VERSIONING",
                f"ALTER TABLE {table} DROP SYSTEM VERSIONING",
                f"CREATE OR REPLACE TABLE {table} {versioned}",
                f"CREATE OR REPLACE TABLE {table} ({name} INT) PARTITION BY LIST ({name}) {parts}",
                f"ALTER TABLE {table} CONVERT PARTITION p TO TABLE {self._table()}",
                f"ALTER TABLE {table} ALTER {name} DROP DEFAULT",
                f"ALTER TABLE {table} CONVERT TO CHARACTER SET binary",
                f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS {self._column()}, DROP COLUMN IF EXISTS {name}",
                f"ALTER TABLE IF EXISTS {table} RENAME COLUMN {first} TO {second}, RENAME COLUMN {second} TO {first}",
                f"CREATE OR REPLACE TABLE {table} ({self._column()}, {self._generated()})",
            ]
        )
