"""Silver's side, and the comparison: DuckDB reads Delta versions, and joins prints of rows.

In:  the address of a silver table and the version that a cut names; prints of the source's rows.
Out: column names; which keys seem to differ, with counts and hashes per chunk; rows of given keys, in the same form as
     the source's.

Memory is bounded: what doesn't fit goes to temporary files, some 60 bytes a row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv as pacsv

from tidegate import tables
from tidegate.computed.row_expressions import ComputedColumn
from tidegate.errors import DeltaUnsupported, LakeRefused, SilverReadError, VerifyError
from tidegate.lake.silver.shards import ShardCells
from tidegate.limits import VERIFY_MEMORY_BYTES_DEFAULT, VERIFY_SUSPECT_ROWS_MAX
from tidegate.query import duck
from tidegate.query.duck import literal, scan
from tidegate.verify.columns.by_functions import READ_ROWS, check_installed, names_of, otherwise
from tidegate.verify.columns.column_types import of_duckdb
from tidegate.verify.columns.forms import FormKind, silver_hash
from tidegate.verify.settle import Key, Row
from tidegate.verify.source_table import Prints, SourceTable
from tidegate.verify.step_lines import StepLines, VerifyStep

_BATCH_ROWS: Final = 20_000


@dataclass(frozen=True, slots=True)
class Silver:
    """A silver table at a version. only: column -> value that a row must have (the shard of a routed table)."""

    address: str
    version: int
    only: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ChunkSums:
    """Rows and their hash, in any order, of a chunk on both sides; rows that silver alone has belong to no chunk."""

    source_rows: int
    source_hash: int
    silver_rows: int
    silver_hash: int

    @property
    def hashes(self) -> tuple[int, int]:
        return self.source_hash, self.silver_hash


@dataclass(frozen=True, slots=True)
class FirstPass:
    """chunks: in the order of reading. seemed: keys with a seeming difference; suspects: the first of them. unkeyed:
    rows of the source and of silver with a NULL in the key, which no key names. doubtful: silver's rows that are
    neither live nor of the past, by their own columns.
    """

    silver_rows: int
    chunks: tuple[ChunkSums, ...]
    extra_hash: int
    seemed: int
    suspects: tuple[Key, ...]
    unkeyed: tuple[int, int] = (0, 0)
    doubtful: int = 0


# Silver's modes, described without their writers' code (merge/past): mark of the mode -> SQL of the live rows, and SQL
# of rows that are neither live nor of the past.
LIVE: Final = {tables.DELETED: f"NOT {tables.DELETED}", tables.IS_CURRENT: tables.IS_CURRENT}
DOUBTFUL: Final = {
    tables.DELETED: f"{tables.DELETED} IS NULL",
    tables.IS_CURRENT: f"{tables.IS_CURRENT} IS DISTINCT FROM ({tables.VALID_TO} IS NULL)",
}
# A table's own: the others are compared all the same.
SILVER_FAULTS: Final = (SilverReadError, LakeRefused, DeltaUnsupported)


class SilverSide:
    """A DuckDB database in memory, with the Delta extension."""

    def __init__(self, memory_bytes: int = VERIFY_MEMORY_BYTES_DEFAULT, progress: StepLines | None = None) -> None:
        import duckdb

        self.progress = progress or StepLines()
        self._database = duck.connect(memory_bytes)
        self._error: type[Exception] = duckdb.Error
        self._database.execute("SET preserve_insertion_order = false")

    def close(self) -> None:
        self._database.close()

    # --- a table --------------------------------------------------------------------------------------

    def columns(self, address: str, version: int) -> list[str]:
        """Names of the source's columns in silver, the system columns left out."""
        return [name for name in self._names(address, version) if not name.startswith(tables.SYSTEM_PREFIX)]

    def types(self, address: str, version: int) -> dict[str, str]:
        """All of silver's columns, each with its type as Spark SQL names it."""
        rows = self._run(f"DESCRIBE SELECT * FROM {scan(address, version)}", address)
        return {str(row[0]): of_duckdb(str(row[1])) for row in rows}

    def _names(self, address: str, version: int) -> list[str]:
        return list(self.types(address, version))

    def count(self, silver: Silver) -> int:
        """Rows of a silver table, deleted ones that it keeps left out."""
        return self._count(self._live(silver), silver.address)

    def shards(self, silver: Silver) -> list[tuple[ShardCells, int]]:
        """The shard columns of a routed table's live rows, and how many rows have them."""
        listed = ", ".join(tables.SHARDS)
        sql = f"SELECT {listed}, count(*) FROM {self._live(silver)} GROUP BY {listed}"
        return [((row[0], row[1], row[2]), int(row[3])) for row in self._run(sql, silver.address)]

    def _count(self, live: str, address: str) -> int:
        return int(next(self._run(f"SELECT count(*) FROM {live}", address))[0])

    def _live(self, silver: Silver) -> str:
        """Its rows that the source has."""
        return self._where(silver, LIVE)

    def _doubtful(self, silver: Silver) -> str:
        """Its rows that are neither live nor of the past, or both: another writer's work."""
        return self._where(silver, DOUBTFUL, "false")

    def _where(self, silver: Silver, conditions: Mapping[str, str], otherwise: str = "true") -> str:
        """The rows of its shard that meet the conditions of the columns that it has."""
        names = self._names(silver.address, silver.version)
        met = " AND ".join(test for name, test in conditions.items() if name in names) or otherwise
        tests = " AND ".join([*(f'"{name}" = {literal(value)}' for name, value in silver.only), met])
        return f"(SELECT * FROM {scan(silver.address, silver.version)} WHERE {tests})"

    # --- prints ---------------------------------------------------------------------------------------

    def keep(self, name: str, table: SourceTable, prints: Iterator[Prints]) -> Iterator[Prints]:
        """Take the prints of the source's rows in, under a name; they come back without their text."""
        columns = _columns(table)
        declared = ", ".join(f"{column} {kind}" for column, kind in columns.items())
        self._database.execute(f"CREATE OR REPLACE TABLE {name} (chunk INTEGER, {declared})")
        types = {column: pa.float64() if kind == "DOUBLE" else pa.string() for column, kind in columns.items()}
        dated = {f"k{n}" for n, form in enumerate(table.key_forms) if form.kind is FormKind.EXACT}
        chosen = ", ".join(f"nullif({column}, '')" if column in dated else column for column in columns)
        self.progress.begin(table.name, VerifyStep.READS)
        for number, some in enumerate(prints):
            self.progress.add(some.rows)
            if some.rows:
                taken = pacsv.read_csv(
                    pa.py_buffer(some.text),
                    read_options=pacsv.ReadOptions(column_names=list(columns)),
                    parse_options=pacsv.ParseOptions(quote_char=False),
                    convert_options=pacsv.ConvertOptions(
                        column_types=types, null_values=[""], strings_can_be_null=False
                    ),
                )
                with self._database.cursor() as cursor:
                    cursor.register("found", taken)
                    cursor.execute(f"INSERT INTO {name} SELECT {number if table.key else 0}, {chosen} FROM found")
            yield Prints(some.after, some.upto, some.rows, b"")

    def drop(self, name: str) -> None:
        self._database.execute(f"DROP TABLE IF EXISTS {name}")

    def compare(self, name: str, table: SourceTable, chunks: int, silver: Silver) -> FirstPass:
        """The prints under a name with those of silver's rows, by key."""
        self.progress.begin(table.name, VerifyStep.COMPARES, self._count(name, silver.address))
        live, where = self._live(silver), silver.address
        columns = _columns(table)
        made = ", ".join(f"{text} AS {column}" for column, text in zip(columns, _silver_prints(table), strict=True))
        theirs = f"(SELECT {made} FROM {live})"
        keys = [column for column in columns if column.startswith("k")]
        rest = [column for column in columns if column not in keys]
        listed = ", ".join(columns)
        if table.key:
            ours, filled, times = name, "h", "1"
            differs = " OR ".join(f"s.{column} IS DISTINCT FROM v.{column}" for column in rest)
            joined = " AND ".join(f"s.{column} = v.{column}" for column in keys)
        else:  # a row is there so many times
            ours = f"(SELECT 0 AS chunk, {listed}, count(*) AS n FROM {name} GROUP BY {listed})"
            theirs = f"(SELECT {listed}, count(*) AS n FROM {theirs} GROUP BY {listed})"
            filled, times, differs = "n", "n", "s.n IS DISTINCT FROM v.n"
            joined = " AND ".join(f"s.{column} IS NOT DISTINCT FROM v.{column}" for column in columns)
            columns["n"] = "BIGINT"
        self._execute(
            "CREATE OR REPLACE TABLE differing AS SELECT coalesce(s.chunk, -1) AS chunk,"
            f" {', '.join(f'coalesce(s.{column}, v.{column}) AS {column}' for column in keys)},"
            + ", ".join(
                f" CASE WHEN {side}.{filled} IS NULL THEN 0 ELSE {times.replace('n', f'{side}.n')} END AS {side}_rows,"
                f" CASE WHEN {side}.{filled} IS NULL THEN 0::UBIGINT ELSE"
                f" {_digest([f'{side}.{column}' for column in columns])} END AS {side}_digest"
                for side in ("s", "v")
            )
            + f" FROM {ours} s FULL OUTER JOIN {theirs} v ON {joined} WHERE {differs}",
            where,
        )
        sums = f"SELECT chunk, sum({times}), bit_xor({_digest(columns)}) FROM {ours} GROUP BY chunk"
        source = {int(row[0]): (int(row[1]), int(row[2])) for row in self._run(sums, where)}
        first = self._first_pass(table, keys, source, chunks, self._count(live, where), theirs)
        return replace(first, doubtful=self._count(self._doubtful(silver), where))

    def otherwise(self, silver: Silver, columns: Sequence[ComputedColumn]) -> dict[str, int]:
        """How many live rows have another value than the computed one, by column."""
        if not columns:
            return {}
        check_installed(columns, silver.address)
        live, plain = self._live(silver), [column for column in columns if not column.function]
        counted = ", ".join([*map(_counted_otherwise, plain), "count(*)"])
        ((*those, _),) = self._run(f"SELECT {counted} FROM {live}", silver.address)
        counts = dict(zip(map(attrgetter("name"), plain), map(int, those), strict=True))
        for column in columns:
            if column.function:
                batches = self._batches(f"SELECT {names_of(column)} FROM {live}", silver.address)
                counts[column.name] = sum(otherwise(column, batch) for batch in batches)
        return counts

    def _batches(self, sql: str, address: str) -> Iterator[pa.RecordBatch]:
        try:
            with self._database.cursor() as cursor:
                yield from cursor.execute(sql).to_arrow_reader(READ_ROWS)
        except self._error as error:
            raise _unread(error, address) from error

    def _first_pass(
        self,
        table: SourceTable,
        keys: Sequence[str],
        source: Mapping[int, tuple[int, int]],
        chunks: int,
        silver_rows: int,
        theirs: str,
    ) -> FirstPass:
        """Silver's sum of a chunk is the source's, with the rows that differ taken out and silver's
        put in.
        """
        sql = (
            "SELECT chunk, sum(s_rows), sum(v_rows), bit_xor(s_digest), bit_xor(v_digest) FROM differing GROUP BY chunk"
        )
        differing = {int(row[0]): tuple(map(int, row[1:])) for row in self._run(sql, table.name)}
        sums = []
        for number in range(chunks):
            rows, digest = source.get(number, (0, 0))
            ours, instead, minus, plus = differing.get(number, (0, 0, 0, 0))
            sums.append(ChunkSums(rows, digest, rows - ours + instead, digest ^ minus ^ plus))
        extra = differing.get(-1, (0, 0, 0, 0))
        listed = ", ".join(keys)
        keyed = " AND ".join(f"{column} IS NOT NULL" for column in keys)
        known_keys = f"SELECT DISTINCT {listed} FROM differing WHERE {keyed}"
        suspects = {tuple(row) for row in self._run(f"{known_keys} LIMIT {VERIFY_SUSPECT_ROWS_MAX}", table.name)}
        ((seemed,),) = self._run(f"SELECT count(*) FROM ({known_keys})", table.name)
        counted = f"SELECT coalesce(sum(s_rows), 0), coalesce(sum(v_rows), 0) FROM differing WHERE NOT ({keyed})"
        ((ours_unkeyed, theirs_unkeyed),) = self._run(counted, table.name)
        if table.key and silver_rows != sum(chunk.silver_rows for chunk in sums) + extra[1]:
            twice = (
                f"SELECT {listed} FROM {theirs} WHERE {keyed} GROUP BY {listed} HAVING count(*) > 1"
                f" LIMIT {VERIFY_SUSPECT_ROWS_MAX}"
            )
            known = len(suspects)
            suspects |= {tuple(row) for row in self._run(twice, table.name)}
            seemed += len(suspects) - known
        unkeyed = int(ours_unkeyed), int(theirs_unkeyed)
        return FirstPass(silver_rows, tuple(sums), extra[3], int(seemed), tuple(suspects), unkeyed)

    # --- rows -----------------------------------------------------------------------------------------

    def rows(self, table: SourceTable, silver: Silver, keys: Sequence[Key]) -> dict[Key, Counter[Row]]:
        """Rows with these keys, in the form of the source's (cells.py)."""
        made, names, wanted = _wanted(table, keys)
        cells = ", ".join(f"{cell.silver_sql} AS c{n}" for n, cell in enumerate(table.cells))
        keyed = ", ".join(f"{text} AS {column}" for column, text in zip(names, made, strict=True))
        counted: dict[Key, Counter[Row]] = {}
        sql = (
            f"SELECT * FROM (SELECT {keyed}, {cells} FROM {self._live(silver)}) v"
            f" SEMI JOIN wanted USING ({', '.join(names)})"
        )
        for row in self._run(sql, silver.address, wanted=wanted):
            counted.setdefault(tuple(row[: len(made)]), Counter())[_converted(table, row[len(made) :])] += 1
        return counted

    def unnamed_rows(self, table: SourceTable, silver: Silver, rows_max: int) -> list[Row]:
        """Some rows with a NULL in the key, and some doubtful ones, in the same form."""
        cells = ", ".join(f"{cell.silver_sql} AS c{n}" for n, cell in enumerate(table.cells))
        lost = " OR ".join(f"{form.silver_key} IS NULL" for form in table.key_forms) or "false"
        both = (f"{self._live(silver)} WHERE {lost}", self._doubtful(silver))
        sql = " UNION ALL ".join(f"(SELECT {cells} FROM {rows})" for rows in both)
        return [_converted(table, row) for row in self._run(f"{sql} LIMIT {rows_max}", silver.address)]

    def whole_rows(self, table: SourceTable, silver: Silver, keys: Sequence[Key]) -> pa.Table:
        """Rows with these keys as silver has them, without its own columns."""
        made, names, wanted = _wanted(table, keys)
        own = [duck.identifier(name) for name in self.columns(silver.address, silver.version)]
        inner = [f"{text} AS {name}" for name, text in zip(names, made, strict=True)]
        inner += [f"{name} AS c{n}" for n, name in enumerate(own)]
        outer = ", ".join(f"c{n} AS {name}" for n, name in enumerate(own))
        live = f"SELECT {', '.join(inner)} FROM {self._live(silver)}"
        sql = f"SELECT {outer} FROM ({live}) v SEMI JOIN wanted USING ({', '.join(names)})"
        try:
            with self._database.cursor() as cursor:
                cursor.register("wanted", wanted)
                return cursor.execute(sql).to_arrow_table()
        except self._error as error:
            raise _unread(error, silver.address) from error

    def keys_of(self, table: SourceTable, rows: pa.Table) -> Collection[Key]:
        """Keys of rows that the log changes; rows: columns as in silver, only the key's of some."""
        made = ", ".join(_silver_prints(table)[: max(1, len(table.key))])
        return {tuple(row) for row in self._run(f"SELECT DISTINCT {made} FROM changed", table.name, changed=rows)}

    # --- DuckDB ---------------------------------------------------------------------------------------

    def _execute(self, sql: str, address: str) -> None:
        for _ in self._run(sql, address):
            pass

    def _run(self, sql: str, address: str, **registered: pa.Table) -> Iterator[tuple[Any, ...]]:
        try:
            with self._database.cursor() as cursor:
                for name, rows in registered.items():
                    cursor.register(name, rows)
                cursor.execute(sql)
                while batch := cursor.fetchmany(_BATCH_ROWS):
                    yield from batch
        except self._error as error:
            raise _unread(error, address) from error


def _counted_otherwise(column: ComputedColumn) -> str:
    differs = f"({column.sql}) IS DISTINCT FROM {duck.identifier(column.name)}"
    # TRY gives NULL where the value can't be had: another writer changed what it is computed from.
    return f"count(*) FILTER (WHERE coalesce(TRY({differs}), true))"


def _unread(error: Exception, address: str) -> VerifyError:
    import duckdb

    if isinstance(error, duckdb.OutOfMemoryException):  # this machine's, whatever the table is
        return VerifyError(str(error).splitlines()[0], where=address, remedy="raise verify.memory_bytes")
    return SilverReadError(
        f"DuckDB can't read silver: {str(error).splitlines()[0]}",
        where=address,
        remedy="check the lake's path and keys",
    )


def _columns(table: SourceTable) -> dict[str, str]:
    """Columns of a print, in the order of its line, with DuckDB's types."""
    keys = {f"k{n}": "DOUBLE" if form.kind is FormKind.NUMBER else "VARCHAR" for n, form in enumerate(table.key_forms)}
    rest = {"h": "VARCHAR"} if keys else {"k0": "VARCHAR"}
    return keys | rest | {f"f{n}": "DOUBLE" for n in range(len(table.numbers))}


def _silver_prints(table: SourceTable) -> list[str]:
    """The same columns, made of silver's."""
    parts = ", ".join(form.silver_hashed for form in table.hashed)
    digest = silver_hash(f"concat_ws(',', {parts})") if parts else "'0'"
    return [*(form.silver_key for form in table.key_forms), digest, *(form.silver for form in table.numbers)]


def _converted(table: SourceTable, cells: Sequence[Any]) -> Row:
    """Cells of silver as the source's are compared."""
    return tuple(
        value if value is None or cell.from_silver is None else cell.from_silver(value)
        for cell, value in zip(table.cells, cells, strict=True)
    )


def _wanted(table: SourceTable, keys: Sequence[Key]) -> tuple[list[str], list[str], pa.Table]:
    """The columns of the key in a print of silver's row, their names, and these keys under them."""
    made = _silver_prints(table)[: max(1, len(table.key))]
    names = [f"k{n}" for n in range(len(made))]
    return made, names, pa.table([list(column) for column in zip(*keys, strict=True)], names=names)


def _digest(columns: Collection[str]) -> str:
    """64 bits of a print; -0 is 0, as it is when prints are joined."""
    texts = (
        f"coalesce(CAST({column} + 0 AS VARCHAR), '')" if column.split(".")[-1].startswith("f")
        else f"coalesce(CAST({column} AS VARCHAR), '')"
        for column in columns
    )  # fmt: skip
    return f"md5_number_lower(concat_ws(',', {', '.join(texts)}))"
