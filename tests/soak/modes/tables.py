"""Forty tables, three kinds of rows in every mode of silver, and what silver then has of a row, computed apart from it.

In:  nothing.
Out: TABLES; rules(), the keys of `tables` in the pipeline file; Table.shown(): a row of the source as silver has it.
     No code of tidegate is used: HMAC is hashlib's, conditions and expressions are Python's.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
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
KEYS: Final = {"keyed": ("id",), "pairs": ("k", "n"), "notes": ("id",), "bag": ()}
MODES: Final = (
    *("plain", "picked", "masked", "filtered", "renamed", "computed", "history", "soft", "changelog"),
    *("history_masked_filtered", "soft_renamed", "computed_filtered"),
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


@dataclass(frozen=True, slots=True)
class Rules:
    """What the pipeline file says of a kind of rows, and the same in Python."""

    picked: str
    masks: Mapping[str, tuple[str, Callable[[Any], Any]]]
    where: tuple[str, Callable[[Row], bool]]
    renames: Mapping[str, str]
    computed: tuple[str, str, str, Callable[[Row], Any]]


RULES: Final = {
    "keyed": Rules(
        picked="b",
        masks={"a": ("how: hmac, key_conn_id: soak_masks", _hashed), "at": ("how: null", lambda _: None)},
        where=("b >= 500", lambda row: row["b"] is not None and row["b"] >= 500),
        renames={"a": "b", "b": "a"},
        computed=("twice", "bigint", "b * 2 + id", lambda row: row["b"] * 2 + row["id"]),
    ),
    "pairs": Rules(
        picked="v",
        masks={"v": ("how: constant, value: hidden", lambda value: None if value is None else "hidden")},
        where=("n >= 10", lambda row: row["n"] >= 10),
        renames={"k": "name", "v": "worth"},
        computed=("both", "string", "k || '-' || n", lambda row: f"{row['k']}-{row['n']}"),
    ),
    "notes": Rules(
        picked="t",
        masks={"t": ("how: partial, last: 2", _ends)},
        where=("id >= 50", lambda row: row["id"] >= 50),
        renames={"t": "body"},
        computed=("size", "bigint", "length(t)", lambda row: None if row["t"] is None else len(row["t"])),
    ),
    "bag": Rules(
        picked="b",
        masks={},
        where=("b = 'same'", lambda row: row["b"] == "same"),
        renames={"b": "c"},
        computed=("none", "int", "1", lambda _: 1),
    ),
}


@dataclass(frozen=True, slots=True)
class Table:
    """kind: of its rows; mode: its words are joined by `_`."""

    kind: str
    mode: str

    @property
    def name(self) -> str:
        return f"{self.kind}_{self.mode}"

    @property
    def key(self) -> tuple[str, ...]:
        return KEYS[self.kind]

    def has(self, word: str) -> bool:
        return word in self.mode.split("_")

    @property
    def is_logged(self) -> bool:
        return self.has("changelog") or self.mode == "soft_renamed"

    def takes(self, row: Row) -> bool:
        """Whether silver has it."""
        return not self.has("filtered") or RULES[self.kind].where[1](row)

    def shown(self, row: Row) -> dict[str, Any]:
        """A row that silver has."""
        rules, values = RULES[self.kind], dict(row)
        if self.has("computed"):
            name, _, _, made = rules.computed
            values[name] = made(row)
        if self.has("masked"):
            values |= {name: mask(row[name]) for name, (_, mask) in rules.masks.items()}
        if self.has("picked"):
            del values[rules.picked]
        if self.has("renamed"):
            values = {rules.renames.get(name, name): value for name, value in values.items()}
        return values

    def shown_key(self, row: Row) -> tuple[Any, ...]:
        """The key's values in a row of silver."""
        renames = RULES[self.kind].renames if self.has("renamed") else {}
        return tuple(row[renames.get(name, name)] for name in self.key)


TABLES: Final = (
    *(Table(kind, mode) for kind in ("keyed", "pairs", "notes") for mode in MODES),
    *(Table("bag", mode) for mode in BAG_MODES),
)
NAMED: Final = {table.name: table for table in TABLES}


def rules(database: str) -> str:
    """Keys of `tables`, each behind a comma."""
    parts = {
        "history": [f"'{database}.{table.name}'" for table in TABLES if table.has("history")],
        "soft_delete": [f"'{database}.{table.name}'" for table in TABLES if table.has("soft")],
        "changelog": [f"'{database}.{table.name}'" for table in TABLES if table.is_logged],
        "columns": [],
        "masks": [],
        "rows": [],
        "computed": [],
        "renames": [],
    }
    for table in TABLES:
        match, own = f"match: {database}.{table.name}", RULES[table.kind]
        if table.has("picked"):
            parts["columns"].append(f"{{{match}, exclude: [{own.picked}]}}")
        if table.has("masked"):
            parts["masks"] += [f"{{{match}, columns: [{name}], {how}}}" for name, (how, _) in own.masks.items()]
        if table.has("filtered"):
            parts["rows"].append(f'{{{match}, where: "{own.where[0]}"}}')
        if table.has("computed"):
            name, kind, expression, _ = own.computed
            parts["computed"].append(f'{{{match}, name: {name}, type: {kind}, expression: "{expression}"}}')
        if table.has("renamed"):
            renames = ", ".join(f"{old}: {new}" for old, new in own.renames.items())
            parts["renames"].append(f"{{{match}, columns: {{{renames}}}}}")
    return "".join(f", {key}: [{', '.join(values)}]" for key, values in parts.items())
