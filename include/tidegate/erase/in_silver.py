"""A person's rows in silver: live ones, which mustn't be there, and ended ones of a table with a past.

In:  a silver table, its subject.
Out: the keys of the condition's rows; the count of a file's rows with one of the keys; the other rows.

Bronze may not reach back as far as a table with a past, so silver's rows are searched, too. Rows of other shards aren't
touched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate import tables
from tidegate.conditions.model import leaves
from tidegate.delta.table.live_file import LiveFile
from tidegate.delta.table.state import TableState
from tidegate.erase.reach import BY_AGE
from tidegate.erase.subject import Subject
from tidegate.errors import LakeRefused, UsageError
from tidegate.lake.files import LakeFiles
from tidegate.merge.past import past_of
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.model.renamed import Names, under_names
from tidegate.upsert.files.file_layout import FileLayout
from tidegate.upsert.files.rewrite import live_rows


@dataclass(frozen=True, slots=True)
class SubjectInSilver:
    """path: within the lake. name: logical. plain: columns at the source, in lower case, whose values it has. names: of
    renamed columns, by silver's own log: the pipeline file may say other ones by now.
    """

    lake: LakeFiles
    path: str
    name: str
    subject: Subject
    plain: frozenset[str]
    names: Names = field(default_factory=dict)

    @property
    def newest(self) -> TableVersion:
        """The table's version of today, under silver's names."""
        return under_names(self.subject.newest, self.names)

    @property
    def has_key(self) -> bool:
        return self.plain.issuperset(map(str.lower, self.subject.newest.key_names))

    @property
    def has_past(self) -> bool:
        return past_of(self._names(self._state())).rows_stay

    def look(self) -> None:
        """Learn the keys of rows of the past. Raises UsageError where silver can't answer the condition."""
        if not self.has_past:
            return
        if not self.has_key:
            raise UsageError("its silver keeps rows of the past, and its key is masked", where=self.name, remedy=BY_AGE)
        asked = {leaf.column.lower() for leaf in leaves(self.subject.condition)}
        if hidden := sorted(asked - self.plain):
            raise UsageError(
                f"its silver keeps rows of the past, and has no plain values of {hidden[0]}",
                where=self.name,
                remedy="name the rows by other columns, its key for one",
            )
        by_name = {column.name.lower(): column.silver for column in self.newest.columns}
        state = self._state()
        names = dict.fromkeys([*self._key(state), *(by_name[name] for name in sorted(asked))])
        for file in state.files:
            for rows in self._rows(file, state, list(names)):
                for batch in rows.filter(pa.array(self._of_shard(rows))).to_batches():
                    self.subject.look_at(batch, self.newest)

    def check_live(self) -> None:
        """Raises LakeRefused while silver has a live row with one of the keys."""
        if not self.has_key:
            return  # masked, and without a past: the cut says that silver equals the source
        state = self._state()
        past = past_of(self._names(state))
        names = [*self._key(state), *([past.mark] if past.mark else [])]
        for file in state.files:
            for rows in self._rows(file, state, names):
                if self._matches(past.live_rows(rows)).any():
                    raise LakeRefused(
                        "silver still has rows of the person, and the source hasn't",
                        where=self.name,
                        remedy="see `tidegate verify --repair`; then run this again",
                    )

    def count(self, file: LiveFile, state: TableState) -> int:
        """How many of the person's rows a file has."""
        if not self.subject.keys or not past_of(self._names(state)).rows_stay:
            return 0
        count = 0
        for rows in self._rows(file, state, [*self._key(state), tables.COMMIT_TS]):
            count += int(np.count_nonzero(self._goes(rows)))
        return count

    def without(self, rows: pa.Table) -> pa.Table:
        """Rows that aren't the person's, of a table with a past."""
        if not self.subject.keys or not past_of(rows.column_names).rows_stay:
            return rows
        return rows.filter(pa.array(~self._goes(rows)))

    def _goes(self, rows: pa.Table) -> np.ndarray:
        """A bool per row: it goes. A row from after the question to the source belongs to the person
        who has the key now.
        """
        is_old = pc.less_equal(rows[tables.COMMIT_TS], self.subject.upto_ts)
        goes: np.ndarray = self._matches(rows) & pc.fill_null(is_old, fill_value=True).to_numpy()
        return goes

    def _matches(self, rows: pa.Table) -> np.ndarray:
        batches = rows.select(list(self.newest.silver_key)).combine_chunks().to_batches()
        masks = [self.subject.has_key(batch, self.newest) for batch in batches]
        return np.concatenate(masks) & self._of_shard(rows) if masks else np.zeros(0, np.bool_)

    def _key(self, state: TableState) -> list[str]:
        """Names in silver: the key's, and those of the shard."""
        names = self._names(state)
        return [*self.newest.silver_key, *(name for name in tables.SHARDS if name in names)]

    def _of_shard(self, rows: pa.Table) -> np.ndarray:
        """Per row, whether it came from the subject's table; a row of no shard is everybody's."""
        mask = np.ones(rows.num_rows, np.bool_)
        for name, wanted in zip(tables.SHARDS, self.subject.newest.physical, strict=True):
            if name in rows.column_names:
                is_it = pc.fill_null(pc.equal(rows[name], wanted), fill_value=True)
                mask &= is_it.combine_chunks().to_numpy(zero_copy_only=False)
        return mask

    def _rows(self, file: LiveFile, state: TableState, names: Sequence[str]) -> Iterator[pa.Table]:
        layout = FileLayout.of(state, ())
        narrow = replace(layout, schema=pa.schema([layout.schema.field(name) for name in names]))
        return live_rows(self.lake, self.path, file, narrow)

    def _state(self) -> TableState:
        return self.lake.log(self.path).state()

    @staticmethod
    def _names(state: TableState) -> list[str]:
        return [field["name"] for field in state.schema["fields"]]
