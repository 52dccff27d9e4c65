"""Random DDL that servers mostly accept.

In:  a seeded random.Random.
Out: statements about a handful of tables of one database; a server refuses some of them, which is fine.
"""

from __future__ import annotations

import random

TYPES = [
    "TINYINT", "TINYINT(1)", "BOOL", "SMALLINT UNSIGNED", "MEDIUMINT", "INT", "INT(5) ZEROFILL", "INTEGER UNSIGNED",
    "BIGINT", "BIGINT UNSIGNED", "FLOAT", "FLOAT(30)", "FLOAT(8,2)", "DOUBLE PRECISION", "REAL UNSIGNED", "DEC",
    "NUMERIC(8)", "DECIMAL(20,4)", "DECIMAL(65,30)", "BIT", "BIT(9)", "DATE", "TIME", "TIME(3)", "DATETIME",
    "DATETIME(6)", "TIMESTAMP", "TIMESTAMP(2) NULL", "YEAR", "CHAR", "CHAR(7)", "NCHAR(3)", "VARCHAR(20)",
    "VARCHAR(30) CHARACTER SET latin1", "VARCHAR(9) COLLATE utf8mb4_bin", "NATIONAL VARCHAR(4)",
    "CHAR(4) CHARACTER SET ascii BINARY", "BINARY", "BINARY(4)", "VARBINARY(9)", "TINYTEXT", "TEXT", "TEXT(50)",
    "TEXT(90000)", "MEDIUMTEXT CHARACTER SET latin1", "LONGTEXT", "BLOB", "BLOB(70000)", "LONG VARBINARY",
    "ENUM('a','b''c')", "SET('x','y') CHARACTER SET latin1", "JSON", "POINT", "GEOMETRY",
    "VARCHAR(5) CHARACTER SET binary", "TEXT CHARACTER SET binary",
    "VARCHAR(30) /*M! COMPRESSED */ CHARACTER SET latin1",
    "TEXT /*M! COMPRESSED=zlib */", "VARBINARY(30) /*M! COMPRESSED */",
]  # fmt: skip
# ucs2 is left out: information_schema shows members of ENUM and SET as '?' there.
CHARSETS = ["latin1", "utf8mb4", "utf8", "ascii", "utf8mb4 COLLATE utf8mb4_bin", "latin2"]
NAMES = ["a", "b", "C", "`d e`", "`order`", "f", "g", "h"]
# A name that is quoted but plain: MariaDB 11.4 leaves `t 4` behind when an ALTER renames it and adds a column.
TABLES = ["t1", "t2", "T3", "`t4`"]
COMMENTS = ["", "/* plain */ ", "/*!40000 */ ", "/*!99999 nonsense */ "]


class RandomDdl:
    """A source of statements; the same seed gives the same ones."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def statement(self) -> str:
        pick = self.random.random()
        if pick < 0.22:
            return self._create()
        if pick < 0.86:
            return self._alter()
        if pick < 0.90:
            return f"DROP TABLE {self._maybe('IF EXISTS')} {self._table()}"
        if pick < 0.93:
            return self._rename()
        if pick < 0.95:
            return f"TRUNCATE {self._maybe('TABLE')} {self._table()}"
        if pick < 0.97:
            return f"CREATE {self._maybe('UNIQUE')} INDEX i{self._digit()} ON {self._table()} ({self._name()})"
        return f"DROP INDEX i{self._digit()} ON {self._table()}"

    def _maybe(self, text: str, chance: float = 0.5) -> str:
        return text if self.random.random() < chance else ""

    def _digit(self) -> int:
        return self.random.randrange(3)

    def _name(self) -> str:
        return self.random.choice(NAMES)

    def _table(self) -> str:
        return self.random.choice(TABLES)

    def _column(self, name: str | None = None) -> str:
        words = [name or self._name(), self.random.choice(COMMENTS) + self.random.choice(TYPES)]
        words.append(self.random.choice(["", "", "NULL", "NOT NULL", "NOT NULL"]))
        words.append(self._maybe("DEFAULT NULL", 0.1))
        words.append(self._maybe("UNIQUE", 0.08))
        words.append(self._maybe("COMMENT 'it''s, (a) comment'", 0.2))
        return " ".join(word for word in words if word)

    def _generated(self) -> str:
        how = self.random.choice(["VIRTUAL", "STORED", ""])
        return f"{self._name()} INT {self._maybe('GENERATED ALWAYS')} AS (1 + (2)) {how}"

    def _create(self) -> str:
        if self.random.random() < 0.15:
            return f"CREATE TABLE {self._maybe('IF NOT EXISTS')} {self._table()} LIKE {self._table()}"
        names = self.random.sample(NAMES, self.random.randrange(1, 6))
        parts = [self._column(name) for name in names]
        if self.random.random() < 0.2:
            parts.append(self._generated())
        if self.random.random() < 0.5:
            parts.append(f"PRIMARY KEY ({', '.join(self.random.sample(names, min(len(names), 2)))})")
        if self.random.random() < 0.4:
            parts.append(f"UNIQUE {self._maybe(f'KEY i{self._digit()}')} ({self.random.choice(names)})")
        if self.random.random() < 0.3:
            parts.append(f"KEY ({self.random.choice(names)})")
        options = self._maybe(f"DEFAULT CHARSET={self.random.choice(CHARSETS)}", 0.4)
        options += self._maybe(" COMMENT='ENGINE=x'", 0.2)
        return f"CREATE TABLE {self._maybe('IF NOT EXISTS')} {self._table()} ({', '.join(parts)}) {options}"

    def _rename(self) -> str:
        a, b, c = self.random.sample(TABLES, 3)
        if self.random.random() < 0.4:
            return f"RENAME TABLE {a} TO x, {b} TO {a}, x TO {b}"
        return f"RENAME TABLE {a} TO {c}"

    def _alter(self) -> str:
        count = self.random.choice([1, 1, 1, 2, 3])
        return f"ALTER TABLE {self._table()} {', '.join(self._action() for _ in range(count))}"

    def _action(self) -> str:
        place = self.random.choice(["", "", "", " FIRST", f" AFTER {self._name()}"])
        index = self.random.choice(["KEY", "UNIQUE", "UNIQUE KEY"])
        return self.random.choice(
            [
                f"ADD {self._maybe('COLUMN')} {self._column()}{place}",
                f"ADD {self._maybe('COLUMN')} {self._column()}{place}",
                f"ADD ({self._column()}, {self._column()})",
                f"ADD {self._generated()}",
                f"DROP {self._maybe('COLUMN')} {self._name()}",
                f"MODIFY {self._column()}{place}",
                f"CHANGE {self._name()} {self._column()}{place}",
                f"RENAME COLUMN {self._name()} TO {self._name()}",
                f"ALTER COLUMN {self._name()} SET DEFAULT 1",
                f"ADD {index} {self._maybe(f'i{self._digit()}')} ({self._name()}, {self._name()})",
                f"ADD {index} {self._maybe(f'i{self._digit()}')} ({self._name()})",
                f"ADD UNIQUE ({self._name()}(2))",
                f"ADD PRIMARY KEY ({self._name()}, {self._name()})",
                "DROP PRIMARY KEY",
                f"DROP INDEX i{self._digit()}",
                f"DROP INDEX {self._name()}",
                f"CONVERT TO CHARACTER SET {self.random.choice(CHARSETS)}",
                f"DEFAULT CHARACTER SET {self.random.choice(CHARSETS)}",
                f"RENAME TO {self._table()}",
                "ENGINE=InnoDB",
                "COMMENT = 'ADD x INT, DROP a'",
                "ALGORITHM=COPY",
            ]
        )
