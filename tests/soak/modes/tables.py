"""Forty tables, three kinds of rows in every mode of silver, and what silver then has of a row, computed apart from it.

In:  nothing.
Out: TABLES; rules(), the keys of `tables` in the pipeline file; Table.shown(): a row of the source as silver has it.
     No code of tidegate is used: HMAC is hashlib's, conditions and expressions are Python's.

Names of columns that are added say what rules do with them: m1 is masked, p1 is left out, c1 stays as it is.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

KEY: Final = "a key of masks, for a soak alone"
Row: TypeAlias = Mapping[str, Any]

SCHEMAS: Final = {
    "keyed": "(id INT PRIMARY KEY, a VARCHAR(300), b INT, at DATETIME(6))",
    "pairs": "(k VARCHAR(20) NOT NULL, n INT NOT NULL, v DECIMAL(18,4), PRIMARY KEY (k, n))",
    "notes": "(id BIGINT UNSIGNED PRIMARY KEY AUTO_INCREMENT, t MEDIUMTEXT)",
    "bag": "(a INT, b VARCHAR(40))",
}
COLUMNS: Final = {"keyed": ("id", "a", "b", "at"), "pairs": ("k", "n", "v"), "notes": ("id", "t"), "bag": ("a", "b")}
KEYS: Final = {"keyed": ("id",), "pairs": ("k", "n"), "notes": ("id",), "bag": ()}
MODES: Final = (
    *("plain", "picked", "masked", "filtered", "renamed", "computed", "history", "soft", "changelog"),
    *("history_masked_filtered", "soft_renamed_changelog", "computed_filtered"),
)
BAG_MODES: Final = ("plain", "filtered", "renamed", "soft")
DEFAULT: Final = 7  # of the columns that are added


def _hashed(value: Any) -> Any:
    return None if value is None else hmac.new(KEY.encode(), str(value).encode(), hashlib.sha256).hexdigest()


def _ends(value: Any) -> Any:
    """The last two characters stay, unless these are all."""
    if value is None:
        return None
    return "*" * len(value) if len(value) <= 2 else "*" * (len(value) - 2) + value[-2:]


def _hidden(value: Any) -> Any:
    return None if value is None else "hidden"


_Mask: TypeAlias = tuple[str, Callable[[Any], Any]]
_NULL: Final[_Mask] = ("how: null", lambda _: None)
_CONSTANT: Final[_Mask] = ("how: constant, value: hidden", _hidden)
_HMAC: Final[_Mask] = ("how: hmac, key_conn_id: soak_masks", _hashed)


@dataclass(frozen=True, slots=True)
class Rules:
    """What the pipeline file says of a kind of rows, and the same in Python. picked, masks: patterns of columns.

    computed: name, type, an expression with {columns}, and the same of a row that is masked.
    """

    picked: str
    masks: Mapping[str, _Mask]
    where: tuple[str, Callable[[Row], bool]]
    renames: Mapping[str, str]
    computed: tuple[str, str, str, Callable[[Row], Any]]


# Of each kind, the rules that it begins with, and others.
RULES: Final = {
    "keyed": (
        Rules(
            picked=r"b|p\d",
            masks={"a": _HMAC, "at": _NULL, r"m\d": _CONSTANT},
            where=("b >= 500", lambda row: row["b"] is not None and row["b"] >= 500),
            renames={"a": "b", "b": "a", "c1": "d1"},
            computed=("twice", "bigint", "{b} * 2 + {id}", lambda row: row["b"] * 2 + row["id"]),
        ),
        Rules(
            picked=r"at|p\d",
            masks={"a": ("how: partial, last: 2", _ends), r"m\d": _NULL},
            where=("b < 700 OR a = ''", lambda row: row["b"] < 700 or row["a"] == ""),
            renames={"id": "number", "at": "moment"},
            computed=("size", "bigint", "length({a})", lambda row: None if row["a"] is None else len(row["a"])),
        ),
    ),
    "pairs": (
        Rules(
            picked=r"v|p\d",
            masks={"v": _CONSTANT, r"m\d": _HMAC},
            where=("n >= 10", lambda row: row["n"] >= 10),
            renames={"k": "name", "v": "worth"},
            computed=("both", "string", "{k} || '-' || {n}", lambda row: f"{row['k']}-{row['n']}"),
        ),
        Rules(
            picked=r"p\d",
            masks={"v": _NULL, r"m\d": _CONSTANT},
            where=("n < 40 AND v > 0", lambda row: row["n"] < 40 and row["v"] is not None and row["v"] > 0),
            renames={"n": "number"},
            computed=("third", "int", "{n} // 3", lambda row: row["n"] // 3),
        ),
    ),
    "notes": (
        Rules(
            picked=r"t|p\d",
            masks={"t": ("how: partial, last: 2", _ends), r"m\d": _NULL},
            where=("id >= 50", lambda row: row["id"] >= 50),
            renames={"t": "body", "m1": "secret"},
            computed=("size", "bigint", "length({t})", lambda row: None if row["t"] is None else len(row["t"])),
        ),
        Rules(
            picked=r"p\d",
            masks={"t": _HMAC, r"m\d": _HMAC},
            where=("NOT t = ''", lambda row: row["t"] is not None and row["t"] != ""),
            renames={"id": "number"},
            computed=("half", "double", "{id} / 2", lambda row: row["id"] / 2),
        ),
    ),
    "bag": (
        Rules(
            picked="b",
            masks={},
            where=("b = 'same'", lambda row: row["b"] == "same"),
            renames={"b": "c"},
            computed=("none", "int", "1", lambda _: 1),
        ),
        Rules(
            picked="b",
            masks={},
            where=("a < 10", lambda row: row["a"] < 10),
            renames={"a": "b", "b": "a"},
            computed=("none", "int", "1", lambda _: 1),
        ),
    ),
}


@dataclass(frozen=True, slots=True)
class Table:
    """kind: of its rows; mode: its words are joined by `_`. called: its name, if not both; own: which rules."""

    kind: str
    mode: str
    called: str = ""
    own: int = 0

    @property
    def name(self) -> str:
        return self.called or f"{self.kind}_{self.mode}"

    @property
    def rules(self) -> Rules:
        return RULES[self.kind][self.own]

    @property
    def key(self) -> tuple[str, ...]:
        return KEYS[self.kind]

    def has(self, word: str) -> bool:
        return word in self.mode.split("_")

    def takes(self, row: Row) -> bool:
        """Whether silver has it."""
        return not self.has("filtered") or self.rules.where[1](row)

    def shown(self, row: Row) -> dict[str, Any]:
        """A row that silver has."""
        values = dict(row)
        if self.has("masked"):
            for pattern, (_, mask) in self.rules.masks.items():
                values |= {name: mask(row[name]) for name in row if re.fullmatch(pattern, name)}
        name, _, _, made = self.rules.computed
        computed = {name: made(values)} if self.has("computed") else {}
        if self.has("picked"):
            values = {name: value for name, value in values.items() if not re.fullmatch(self.rules.picked, name)}
        return {self.silver_name(name): value for name, value in values.items()} | computed

    def silver_name(self, column: str) -> str:
        return self.rules.renames.get(column, column) if self.has("renamed") else column

    def shown_key(self, row: Row) -> tuple[Any, ...]:
        """The key's values in a row of silver."""
        return tuple(row[self.silver_name(name)] for name in self.key)


TABLES: Final = (
    *(Table(kind, mode) for kind in ("keyed", "pairs", "notes") for mode in MODES),
    *(Table("bag", mode) for mode in BAG_MODES),
)
NAMED: Final = {table.name: table for table in TABLES}


def rules(database: str, tables: Iterable[Table] = TABLES) -> str:
    """Keys of `tables`, each behind a comma."""
    parts: dict[str, list[str]] = {
        "history": [f"'{database}.{table.name}'" for table in tables if table.has("history")],
        "soft_delete": [f"'{database}.{table.name}'" for table in tables if table.has("soft")],
        "changelog": [f"'{database}.{table.name}'" for table in tables if table.has("changelog")],
        "columns": [],
        "masks": [],
        "rows": [],
        "computed": [],
        "renames": [],
    }
    for table in tables:
        match, own = f"match: {database}.{table.name}", table.rules
        if table.has("picked"):
            parts["columns"].append(f"{{{match}, exclude: ['{own.picked}']}}")
        if table.has("masked"):
            parts["masks"] += [f"{{{match}, columns: ['{name}'], {how}}}" for name, (how, _) in own.masks.items()]
        if table.has("filtered"):
            parts["rows"].append(f'{{{match}, where: "{own.where[0]}"}}')
        if table.has("computed"):
            name, kind, expression, _ = own.computed
            whole = expression.format_map({column: table.silver_name(column) for column in COLUMNS[table.kind]})
            parts["computed"].append(f'{{{match}, name: {name}, type: {kind}, expression: "{whole}"}}')
        if table.has("renamed"):
            renames = ", ".join(f"{old}: {new}" for old, new in own.renames.items())
            parts["renames"].append(f"{{{match}, columns: {{{renames}}}}}")
    return "".join(f", {key}: [{', '.join(values)}]" for key, values in parts.items())
