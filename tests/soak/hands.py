"""Other hands on silver: Delta's own statements, rows written by somebody else, folders that go or come back.

In:  the lake, Spark.
Out: KINDS: functions of whoever has both, and a table's path. Hands that change rows say so: the table's rows are then
     to be copied again by a person, as verification tells. Hands: somebody's, beside the applies of a soak.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.soak.applies import Applies
from tidegate.lake.files import LakeFiles


class Handled(Protocol):
    """What hands are laid on."""

    @property
    def spark(self) -> SparkSession: ...
    @property
    def lake(self) -> LakeFiles: ...

    def note(self, line: str) -> None:
        """Into the book."""


# What Delta answers to what can't be: a table without rows, a version that is gone, a column that is NOT NULL.
_REFUSED: Final = (PySparkException, Py4JError)


def _ask(world: Handled, statement: str) -> bool:
    try:
        world.spark.sql(statement).collect()
    except _REFUSED as error:
        world.note(f"refused: {statement}: {str(error)[:120]!r}")
        return False
    world.note(statement)
    return True


def _named(world: Handled, path: str) -> str:
    return f"delta.`{world.lake.root}/{path}`"


def optimize(world: Handled, path: str) -> bool:
    _ask(world, f"OPTIMIZE {_named(world, path)}")
    return False


def vacuum(world: Handled, path: str) -> bool:
    _ask(world, f"VACUUM {_named(world, path)} RETAIN 168 HOURS")
    return False


def properties(world: Handled, path: str) -> bool:
    """What README names as silver's owner's to set."""
    number = world.lake.log(path).state().version
    key, value = (
        ("delta.enableChangeDataFeed", "true"),
        ("delta.checkpointInterval", "3"),
        ("owner.note", "ours"),
        ("delta.enableRowTracking", "true"),
        ("delta.enableDeletionVectors", "false"),
        ("delta.dataSkippingNumIndexedCols", "2"),
    )[number % 6]
    _ask(world, f"ALTER TABLE {_named(world, path)} SET TBLPROPERTIES ('{key}' = '{value}')")
    return False


def own_column(world: Handled, path: str) -> bool:
    """A column of the owner's, with values."""
    if _ask(world, f"ALTER TABLE {_named(world, path)} ADD COLUMNS (owners_note STRING)"):
        _ask(world, f"UPDATE {_named(world, path)} SET owners_note = 'kept'")
    return False


def delete(world: Handled, path: str) -> bool:
    return _ask(world, f"DELETE FROM {_named(world, path)} WHERE _tg_commit_ts % 3 = 0")


def insert(world: Handled, path: str) -> bool:
    return _ask(world, f"INSERT INTO {_named(world, path)} SELECT * FROM {_named(world, path)} LIMIT 1")


def update(world: Handled, path: str) -> bool:
    """The last column of a source's: in none of a soak's own tables is it of the key."""
    fields = world.lake.log(path).state().schema["fields"]
    *_, last = (field["name"] for field in fields if not field["name"].startswith("_tg_"))
    return _ask(world, f"UPDATE {_named(world, path)} SET `{last}` = NULL WHERE _tg_commit_ts % 2 = 0")


def restore(world: Handled, path: str) -> bool:
    """Apply sees it by itself."""
    version = world.lake.log(path).state().version
    _ask(world, f"RESTORE TABLE {_named(world, path)} TO VERSION AS OF {max(0, version - 1 - version % 3)}")
    return False


def lose(world: Handled, path: str) -> bool:
    world.note(f"lost: {path}")
    shutil.rmtree(Path(world.lake.root) / path)
    return False


KINDS: Final[dict[str, Callable[[Handled, str], bool]]] = {
    function.__name__: function
    for function in (optimize, vacuum, properties, own_column, delete, insert, restore, lose)
}
# What changes rows alone.
ROWS: Final[dict[str, Callable[[Handled, str], bool]]] = {
    function.__name__: function for function in (delete, insert, update)
}


class Hands:
    """touched: tables whose rows somebody has changed, and nobody has copied again."""

    def __init__(self, root: Path, applies: Applies) -> None:
        """root: of the lake."""
        self.touched: set[str] = set()
        self.root = root
        self._applies = applies

    @property
    def spark(self) -> SparkSession:
        return self._applies.spark

    @property
    def lake(self) -> LakeFiles:
        return LakeFiles(str(self.root))

    def note(self, line: str) -> None:
        self._applies.say(f"--- {line}")
