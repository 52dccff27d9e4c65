"""DDL composed at random over the tables that are there, so that servers mostly accept it.

In:  a seeded random.Random, the tables.
Out: Ddl.statement(): one statement of some kind, or several that belong together.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from tests.soak.hostile.columns import KEY_TYPES, Column, random_type
from tests.soak.hostile.tables import HOSTILE, TABLES_MAX, Table
from tests.support.random_ddl import CHARSETS
from tests.support.random_definitions import DEFAULTS, EXPRESSIONS

_NAMES = ("a", "b", "c", "D", "e_é", "f", "g", "h")
_TABLES = ("t1", "t2", "T3", "t4", "t5", "t_é", "t7", "t 8")
_PARTITIONS = (
    "PARTITION BY HASH (`{0}`) PARTITIONS 3",
    "PARTITION BY KEY (`{0}`) PARTITIONS 2",
    "PARTITION BY RANGE (`{0}`) (PARTITION p0 VALUES LESS THAN (20), PARTITION p1 VALUES LESS THAN MAXVALUE)",
)
_COLLATIONS = ("utf8mb4_general_ci", "utf8mb4_bin", "latin1_swedish_ci", "utf8mb4_unicode_ci", "latin1_bin")


class Ddl:
    """A source of statements; a server refuses some of them, which is fine."""

    def __init__(self, rng: random.Random, *, mariadb: bool) -> None:
        self._rng, self._mariadb = rng, mariadb

    def statements(self, tables: Sequence[Table]) -> list[str]:
        """Some that belong together, in order."""
        rng = self._rng
        if len(tables) < TABLES_MAX // 2 or (len(tables) < TABLES_MAX and rng.random() < 0.25):
            return [self.another(tables)]
        table = rng.choice(tables)
        kinds: dict[Callable[[Table, Sequence[Table]], list[str]], int] = {
            self._alter: 26,
            self._renames: 4,
            self._made_again: 4,
            self._copies: 4,
            self._partitions: 8 if table.partitions else 2,
            self._foreign: 3,
            self._empties: 3,
            self._drops: 2,
            self._beside: 4,
        }
        return rng.choices(list(kinds), list(kinds.values()))[0](table, tables)

    # --- tables -------------------------------------------------------------------------------------------

    def another(self, tables: Sequence[Table]) -> str:
        """One that isn't there yet."""
        return self.create(self._new_name(tables))

    def create(self, name: str) -> str:
        """A new table; most have a key."""
        rng = self._rng
        names = rng.sample(_NAMES, rng.randint(2, 6))
        key = [f"id {rng.choice(['INT', 'INT', 'BIGINT UNSIGNED', *KEY_TYPES])}"]
        key += [f"k2 {rng.choice(KEY_TYPES)}"] if rng.random() < 0.25 else []
        parts = [f"{column} NOT NULL" if " NULL" not in column else column for column in key]
        if "INT" in key[0] and len(key) == 1 and rng.random() < 0.3:
            parts[0] += " AUTO_INCREMENT"
        parts += [self._column(word) for word in names]
        columns = ", ".join(word.split()[0] for word in key)
        kind = rng.random()
        if kind < 0.75:
            parts.append(f"PRIMARY KEY ({columns})")
        elif kind < 0.9:
            parts.append(f"UNIQUE KEY u ({columns})")
        else:
            parts[0] = parts[0].replace(" AUTO_INCREMENT", "")
        if rng.random() < 0.2:
            parts.append(self._generated(names))
        options = f" DEFAULT CHARSET={rng.choice(CHARSETS)}" if rng.random() < 0.4 else ""
        options += rng.choice([*[""] * 9, " ENGINE=MyISAM", " ENGINE=Aria" if self._mariadb else " ROW_FORMAT=COMPACT"])
        if kind < 0.75 and key[0] in ("id INT", "id BIGINT UNSIGNED") and rng.random() < 0.25:
            options += f" {rng.choice(_PARTITIONS).format('id')}"
        how = rng.choice(["CREATE TABLE", "CREATE TABLE IF NOT EXISTS", "CREATE OR REPLACE TABLE"])
        how = how if self._mariadb else how.replace(" OR REPLACE", "")
        return f"{how} {name} ({', '.join(parts)}){options}"

    def _new_name(self, tables: Sequence[Table]) -> str:
        rng = self._rng
        taken = {table.quoted for table in tables}
        names = [f"{database}.`{name}`" for database in HOSTILE for name in _TABLES]
        return rng.choice([name for name in names if name not in taken] or names)

    def _renames(self, table: Table, tables: Sequence[Table]) -> list[str]:
        """Away, in a cycle, to another database; as an online schema change ends."""
        rng, name, other = self._rng, table.quoted, self._rng.choice(tables).quoted
        free = self._new_name(tables)
        return rng.choice(
            [
                [f"RENAME TABLE {name} TO {free}"],
                [f"ALTER TABLE {name} RENAME TO {free}"],
                [f"RENAME TABLE {name} TO {HOSTILE[0]}.x, {other} TO {name}, {HOSTILE[0]}.x TO {other}"],
                [f"RENAME TABLE {name} TO {free}", f"RENAME TABLE {free} TO {name}"],
                [
                    f"CREATE TABLE {free} LIKE {name}",
                    f"ALTER TABLE {free} ADD COLUMN {self._column('gho')}",
                    f"INSERT INTO {free} ({_listed(table.written)}) SELECT {_listed(table.written)} FROM {name}",
                    f"RENAME TABLE {name} TO {HOSTILE[0]}._old, {free} TO {name}",
                    f"DROP TABLE {HOSTILE[0]}._old",
                ],
                [f"ALTER TABLE {name} RENAME TO {free}, ADD COLUMN {self._column(rng.choice(_NAMES))}"],
            ]
        )

    def _made_again(self, table: Table, tables: Sequence[Table]) -> list[str]:
        return [f"DROP TABLE {table.quoted}", self.create(table.quoted)]

    def _copies(self, table: Table, tables: Sequence[Table]) -> list[str]:
        free, name = self._new_name(tables), table.quoted
        columns = _listed(self._rng.sample(table.columns, self._rng.randint(1, len(table.columns))))
        return self._rng.choice(
            [
                [f"CREATE TABLE {free} LIKE {name}", f"INSERT INTO {free} SELECT * FROM {name}"],
                [f"CREATE TABLE {free} AS SELECT * FROM {name}"],
                [f"CREATE TABLE {free} (id INT PRIMARY KEY AUTO_INCREMENT) SELECT {columns} FROM {name}"],
                [f"CREATE TABLE {free} SELECT {columns}, 1 AS z FROM {name} LIMIT 3"],
                [f"CREATE TABLE {free} LIKE {name}"],
            ]
        )

    def _empties(self, table: Table, tables: Sequence[Table]) -> list[str]:
        return [self._rng.choice(["TRUNCATE TABLE ", "TRUNCATE ", "DELETE FROM "]) + table.quoted]

    def _drops(self, table: Table, tables: Sequence[Table]) -> list[str]:
        other = f", {self._rng.choice(tables).quoted}" if self._rng.random() < 0.2 else ""
        return [f"DROP TABLE {self._rng.choice(['', 'IF EXISTS '])}{table.quoted}{other}"]

    def _partitions(self, table: Table, tables: Sequence[Table]) -> list[str]:
        rng, name = self._rng, table.quoted
        if not table.partitions:
            return [f"ALTER TABLE {name} {rng.choice(_PARTITIONS).format(rng.choice(table.columns).name)}"]
        part, free = rng.choice(table.partitions), self._new_name(tables)
        return rng.choice(
            [
                [f"ALTER TABLE {name} TRUNCATE PARTITION {part}"],
                [f"ALTER TABLE {name} DROP PARTITION {part}"],
                [f"ALTER TABLE {name} REBUILD PARTITION {part}"],
                [f"ALTER TABLE {name} COALESCE PARTITION 1"],
                [f"ALTER TABLE {name} ADD PARTITION PARTITIONS 2"],
                [f"ALTER TABLE {name} REMOVE PARTITIONING"],
                [
                    f"CREATE TABLE {free} LIKE {name}",
                    f"ALTER TABLE {free} REMOVE PARTITIONING",
                    f"ALTER TABLE {name} EXCHANGE PARTITION {part} WITH TABLE {free}",
                ],
                [f"ALTER TABLE {name} CONVERT PARTITION {part} TO TABLE {free}"],
                [f"ALTER TABLE {name} {rng.choice(_PARTITIONS).format(table.columns[0].name)}"],
            ]
        )

    def _foreign(self, table: Table, tables: Sequence[Table]) -> list[str]:
        rng = self._rng
        if table.foreign_keys and rng.random() < 0.6:
            return [f"ALTER TABLE {table.quoted} DROP FOREIGN KEY `{rng.choice(table.foreign_keys)}`"]
        parents = [other for other in tables if len(other.key) == 1 and other is not table]
        if not parents:
            return []
        parent = rng.choice(parents)
        rule = rng.choice(["", "ON DELETE CASCADE", "ON DELETE SET NULL", "ON UPDATE CASCADE ON DELETE CASCADE"])
        same = [column for column in table.written if column.whole == parent.key[0].whole]
        add = "" if same else f"ADD COLUMN p {parent.key[0].whole} NULL, "
        child = rng.choice(same).quoted if same else "p"
        name = f"fk{rng.randrange(1000)}"
        constraint = f"ADD CONSTRAINT {name} FOREIGN KEY ({child}) REFERENCES {parent.quoted} ({parent.key[0].quoted})"
        return ["SET foreign_key_checks = 0", f"ALTER TABLE {table.quoted} {add}{constraint} {rule}"]

    def _beside(self, table: Table, tables: Sequence[Table]) -> list[str]:
        """What is no change of a table's rows, or of one that isn't there for others."""
        rng, name = self._rng, table.quoted
        trigger = f"{table.database}.tr{rng.randrange(4)}"
        writes = self._rng.choice(tables)
        return rng.choice(
            [
                [
                    f"CREATE TEMPORARY TABLE {name} (tmp INT)",
                    f"INSERT INTO {name} VALUES (1)",
                    f"DROP TEMPORARY TABLE {name}",
                ],
                [f"CREATE TRIGGER {trigger} AFTER INSERT ON {name} FOR EACH ROW DELETE FROM {writes.quoted} LIMIT 1"],
                [f"DROP TRIGGER IF EXISTS {trigger}"],
                [f"CREATE OR REPLACE VIEW {table.database}.v1 AS SELECT * FROM {name}"],
                [f"ALTER DATABASE {table.database} CHARACTER SET {rng.choice(CHARSETS).split()[0]}"],
                [f"CREATE INDEX i{rng.randrange(4)} ON {name} ({rng.choice(table.columns).quoted})"],
                [f"ANALYZE TABLE {name}"],
                [f"OPTIMIZE TABLE {name}"],
            ]
        )

    # --- columns ------------------------------------------------------------------------------------------

    def _alter(self, table: Table, tables: Sequence[Table]) -> list[str]:
        rng = self._rng
        actions = ", ".join(self._action(table) for _ in range(rng.choice([1, 1, 1, 2, 3])))
        how = rng.choice([*[""] * 8, ", ALGORITHM=COPY", ", ALGORITHM=INSTANT", ", ALGORITHM=INPLACE"])
        return [f"ALTER TABLE {table.quoted} {actions}{how}"]

    def _action(self, table: Table) -> str:
        rng, column = self._rng, self._rng.choice(table.columns)
        place = rng.choice(["", "", "", " FIRST", f" AFTER {rng.choice(table.columns).quoted}"])
        fresh = rng.choice(_NAMES)
        key = _listed(rng.sample(table.columns, min(len(table.columns), rng.choice([1, 1, 2]))))
        charset = rng.choice(CHARSETS)
        kinds: list[tuple[int, Callable[[], str]]] = [
            (5, lambda: f"ADD COLUMN {self._column(fresh)}{place}"),
            (4, lambda: f"DROP COLUMN {column.quoted}"),
            (6, lambda: f"MODIFY {column.quoted} {self._related(column)}{place}"),
            (3, lambda: f"CHANGE {column.quoted} {fresh} {self._related(column)}{place}"),
            (2, lambda: f"MODIFY {self._column(column.quoted)}{place}"),
            (3, lambda: f"RENAME COLUMN {column.quoted} TO {fresh}"),
            (2, lambda: f"ALTER COLUMN {column.quoted} SET DEFAULT {rng.choice(DEFAULTS)}"),
            (2, lambda: f"ADD {self._generated([one.name for one in table.columns])}"),
            (1, lambda: f"ADD UNIQUE KEY u{rng.randrange(3)} ({key})"),
            (1, lambda: f"ADD PRIMARY KEY ({key})"),
            (1, lambda: f"DROP PRIMARY KEY, ADD PRIMARY KEY ({key})"),
            (1, lambda: "DROP PRIMARY KEY"),
            (1, lambda: f"DROP KEY u{rng.choice(['', '0', '1'])}"),
            (3, lambda: f"CONVERT TO CHARACTER SET {charset}"),
            (1, lambda: f"DEFAULT CHARACTER SET {charset}"),
            (1, lambda: f"ADD COLUMN auto_{rng.randrange(3)} INT NOT NULL AUTO_INCREMENT UNIQUE"),
            (1, lambda: f"ENGINE={rng.choice(['InnoDB', 'MyISAM', 'Aria' if self._mariadb else 'InnoDB'])}"),
            (1, lambda: f"ORDER BY {column.quoted}"),
            (1, lambda: f"ADD CONSTRAINT c{rng.randrange(9)} CHECK ({column.quoted} IS NOT NULL OR 1 = 1)"),
        ]
        if self._mariadb:
            kinds += [(1, lambda: rng.choice(["ADD SYSTEM VERSIONING", "DROP SYSTEM VERSIONING"]))]
            kinds += [(1, lambda: f"ADD COLUMN IF NOT EXISTS {self._column(fresh)}, DROP COLUMN IF EXISTS nothing")]
        else:
            kinds += [(1, lambda: f"ALTER COLUMN {column.quoted} SET {rng.choice(['INVISIBLE', 'VISIBLE'])}")]
        return rng.choices([make for _, make in kinds], [weight for weight, _ in kinds])[0]()

    def _column(self, name: str) -> str:
        rng = self._rng
        words = [name, random_type(rng, mariadb=self._mariadb)]
        words.append(rng.choice(["", "", "NULL", "NOT NULL"]))
        if rng.random() < 0.4:
            words.append(f"DEFAULT {rng.choice(DEFAULTS)}")
        if rng.random() < 0.05:
            words.append("INVISIBLE")
        return " ".join(word for word in words if word)

    def _generated(self, names: Sequence[str]) -> str:
        rng = self._rng
        quoted = ["`" + name.replace("`", "``") + "`" for name in names]
        expression = rng.choice([*EXPRESSIONS, "default({0})"]).format(rng.choice(quoted), rng.choice(quoted))
        kind = rng.choice(["INT", "BIGINT", "VARCHAR(50)", "DATE", "DOUBLE"])
        return f"gen{rng.randrange(3)} {kind} AS ({expression}) {rng.choice(['VIRTUAL', 'STORED', ''])}"

    def _related(self, column: Column) -> str:
        """A type near the column's own, so that a server turns the rows that are there into it."""
        rng, text = self._rng, f"VARCHAR({self._rng.choice([2, 10, 30, 60, 300])})"
        collation = f"{text} COLLATE {rng.choice(_COLLATIONS)}"
        near = {
            "int": ["BIGINT", "INT UNSIGNED", "SMALLINT", "DECIMAL(12,2)", "DOUBLE", text],
            "text": [text, "TEXT", f"CHAR({rng.choice([1, 10, 60])})", collation, "VARBINARY(60)", "MEDIUMTEXT"],
            "time": ["DATETIME(6)", "DATETIME", "DATE", "TIMESTAMP(3) NULL", "TIME(2)", text],
            "real": ["DOUBLE", "FLOAT", "DECIMAL(20,4)", "INT", text],
            "bytes": ["VARBINARY(60)", "BLOB", "BINARY(20)", text],
        }
        kind = column.kind
        group = (
            "int" if "int" in kind or kind in ("year", "bit")
            else "time" if kind in ("date", "datetime", "timestamp", "time")
            else "real" if kind in ("float", "double", "decimal")
            else "bytes" if "blob" in kind or "binary" in kind
            else "text"
        )  # fmt: skip
        members = "ENUM('a','b','c','d','é','x')" if rng.random() < 0.5 else "SET('y','x','z')"
        chosen = members if kind in ("enum", "set") and rng.random() < 0.6 else rng.choice([*near[group], column.whole])
        return f"{chosen} {rng.choice(['', '', 'NULL', 'NOT NULL'])}"


def _listed(columns: Sequence[Column]) -> str:
    return ", ".join(column.quoted for column in columns)
