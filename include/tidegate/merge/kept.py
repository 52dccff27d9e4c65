"""Silver's columns of a table, where the pipeline file leaves out, masks or renames some.

In:  the rules of a logical table (tables.columns, tables.masks, tables.renames), versions of its
     physical tables.
Out: versions as silver has them; masks. SchemaMismatch where silver can't be right so.

Silver needs the columns of the key, and those of foreign keys whose effects aren't logged: these
effects are computed from silver's values. A table without a key needs all columns, since all of its
values identify a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import pyarrow as pa

from tidegate import config
from tidegate.config import KeptColumns, MaskRule
from tidegate.errors import SchemaMismatch
from tidegate.masks.mask_keys import MaskKey
from tidegate.masks.masking import Mask
from tidegate.schema.ddl.expressions import renamed
from tidegate.schema.model.columns import Column, Generated, TableVersion
from tidegate.schema.model.renamed import Names, clash
from tidegate.schema.model.type_table import Kind
from tidegate.schema.model.types import canonical

COLUMNS: Final = "tables.columns"


MASKS: Final = "tables.masks"
_RENAMES: Final = "tables.renames"


# Kinds of text and whole numbers: a value keeps its text when a DDL changes the type.
_TEXTS: Final = frozenset({Kind.TEXT, Kind.ENUM, Kind.SET, Kind.INT, Kind.UNSIGNED_BIGINT})


@dataclass(frozen=True, slots=True)
class Kept:
    """The rules of one silver table. keys: of masks, by the id of a connection."""

    rules: KeptColumns = config.ALL
    keys: Mapping[str, MaskKey] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.rules)

    def takes(self, version: TableVersion, column: Column) -> bool:
        """Whether silver has a column of a version."""
        return not self.rules or self.rules.take(column.name, of_key=column.id in version.key)

    def mask(self, column: Column) -> Mask | None:
        rule = self.rules.mask(column.name, column.comment)
        if rule is None:
            return None
        return Mask(rule, self.keys[rule.key_conn_id] if rule.key_conn_id is not None else None)


ALL: Final = Kept()


_NOTHING: Final = Mask(MaskRule(match="*.*", columns=(".*",), how=config.MaskKind.NULL))


def left_out(kept: Kept, versions: Iterable[TableVersion]) -> frozenset[str]:
    """Names of columns missing in silver in all of these versions."""
    if not kept:
        return frozenset()
    every = ((version, column) for version in versions for column in version.columns)
    return frozenset(column.silver for version, column in every if not kept.takes(version, column))


def unasked(kept: Kept, versions: Iterable[TableVersion]) -> frozenset[str]:
    """Names of columns whose values aren't needed: images may lack them."""
    return left_out(kept, versions) if kept.rules.condition is None else frozenset()


def masks_in(kept: Kept, version: TableVersion) -> dict[str, Mask]:
    """The masks of a version's columns, by silver's names. Raises SchemaMismatch for a type without
    masks.
    """
    masks = decode_masks(kept, version)
    for column in version.columns if masks else ():
        if masks.get(column.silver) is _NOTHING:
            raise SchemaMismatch(
                f"column {column.name} is of type {column.type}: {MASKS} can mask text and whole numbers so",
                where=version.where,
                remedy="mask it by null or constant, or leave it out (tables.columns)",
            )
    return masks


def decode_masks(kept: Kept, version: TableVersion) -> dict[str, Mask]:
    """masks_in of any version, past or present. Values whose type can't have their mask go: their
    table is held.
    """
    masks: dict[str, Mask] = {}
    for column in version.columns if kept.rules.masks else ():
        if kept.takes(version, column) and (mask := kept.mask(column)) is not None:
            masks[column.silver] = mask if _fits(mask.rule, column) else _NOTHING
    return masks


def masked(masks: Mapping[str, Mask], rows: pa.RecordBatch | pa.Table) -> Any:
    """Rows as silver has them, in the form they came in."""
    names = rows.schema.names
    for name in masks:
        if name in names:
            at = names.index(name)
            values = masks[name].column(rows.column(at))
            rows = rows.set_column(at, pa.field(name, values.type), values)
    return rows


def in_silver(kept: Kept, version: TableVersion) -> TableVersion:
    """The version with silver's columns, as silver has them."""
    if not kept:
        return version
    masks = masks_in(kept, version)
    columns = filter(partial(kept.takes, version), version.columns)
    shown = tuple(_shown(column, masks.get(column.silver)) for column in columns)
    return replace(version, columns=shown)


def check_kept(kept: Kept, version: TableVersion) -> None:
    """Raise SchemaMismatch if rows can't be followed without the left-out or masked columns."""
    _check_clash(kept.rules.names, version)
    for does, section, missing in (
        ("leaves out", COLUMNS, left_out(kept, [version])),
        ("masks", MASKS, frozenset(masks_in(kept, version))),
    ):
        if not missing:
            continue
        if not version.key:
            why = f"it has no key, so silver needs all of its columns, and {section} {does} {_listed(missing)}"
            raise SchemaMismatch(why, where=version.where, remedy=f"take the table out of {section}")
        by_name = {column.name.lower(): column.silver for column in version.columns}
        references = (by_name.get(name.lower(), "") for key in version.foreign_keys for name in key.columns)
        if needed := missing & {*version.silver_key, *references}:
            why = f"{section} {does} {_listed(needed)}, of its key or of a foreign key that changes its rows"
            raise SchemaMismatch(why, where=version.where, remedy="keep this column as it is")
    _check_computed(kept, version)


def _check_computed(kept: Kept, version: TableVersion) -> None:
    """Raise SchemaMismatch if a generated column would show masked values of another column.
    Servers define it after the columns that it uses.
    """
    masks = decode_masks(kept, version)
    hidden = {column.name.lower(): "" for column in version.columns if column.silver in masks}
    for column in version.columns if hidden else ():
        expression = column.generation_expression
        if not expression or renamed(expression, hidden) == expression:
            continue
        if column.silver in masks or kept.rules.is_said_plain(column.name, column.comment):
            continue
        hidden[column.name.lower()] = ""
        if kept.takes(version, column):
            raise SchemaMismatch(
                f"column {column.name} is computed from a column that {MASKS} masks: {expression[:80]}",
                where=version.where,
                remedy=f"name it in {MASKS} too, with how: plain where it may be seen, or leave it out ({COLUMNS})",
            )


def _shown(column: Column, mask: Mask | None) -> Column:
    if mask is None:
        return column
    comment = f"masked: {mask.rule.how}" + (f"; {column.comment}" if column.comment else "")
    bare = replace(
        column,
        nullable=True,
        default=None,
        default_is_expression=False,
        generated=Generated.NO,
        generation_expression="",
        comment=comment,
        on_update="",
        no_default=False,
    )
    return bare if mask.is_null else replace(bare, type="longtext", charset="utf8mb4", collation="utf8mb4_bin")


def _fits(rule: MaskRule, column: Column) -> bool:
    any_type = (config.MaskKind.NULL, config.MaskKind.CONSTANT)
    return rule.how in any_type or canonical(column).kind in _TEXTS


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _check_clash(names: Names, version: TableVersion) -> None:
    """Raise SchemaMismatch where two columns of a version would have one name."""
    if names and (name := clash(version.plain, names)):
        why = f"{_RENAMES} gives two columns the name {name}, for readers of Delta"
        raise SchemaMismatch(why, where=version.where, remedy=f"give another name in {_RENAMES}")
