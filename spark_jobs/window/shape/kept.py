"""Silver's columns of a table, where the pipeline file leaves some out or masks them.

In:  the rules of a logical table (tables.columns, tables.masks), versions of its physical tables.
Out: versions as silver has them; masks. SchemaMismatch where silver can't be right so.

Silver needs the key's columns, and those of foreign keys whose effects no server logs: their rules
are followed by silver's values. A table without a key needs all: a row of it is known by all of its
values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import pyarrow as pa

from spark_jobs.window.shape.naming import check_clash
from spark_jobs.window.shape.silver_types import REBUILD, made_anew, read_anew
from tidegate import config
from tidegate.config import KeptColumns, MaskRule
from tidegate.delta.table.state import TableState
from tidegate.errors import RuleChanged, SchemaMismatch
from tidegate.mask_keys import MaskKey
from tidegate.masks import MASK_METADATA, Mask
from tidegate.merge.silver_sql import SilverShape
from tidegate.remedy import REFILL
from tidegate.schema.ddl.expressions import renamed
from tidegate.schema.model.columns import Column, Generated, TableVersion
from tidegate.schema.model.type_table import Kind
from tidegate.schema.model.types import canonical

_RULES_BACK: Final = "or take the change in {} back, then `tidegate release`"
_COLUMNS: Final = "tables.columns"
_MASKS: Final = "tables.masks"
# Kinds whose values are texts or whole numbers: their text is the same whatever a DDL makes of the type.
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
    return frozenset(c.silver for version in versions for c in version.columns if not kept.takes(version, c))


def unasked(kept: Kept, versions: Iterable[TableVersion]) -> frozenset[str]:
    """Names of columns whose values nobody asks for: images may lack them."""
    return left_out(kept, versions) if kept.rules.condition is None else frozenset()


def masks_in(kept: Kept, version: TableVersion) -> dict[str, Mask]:
    """The masks of a version's columns, by silver's names. Raises SchemaMismatch for a type without
    masks.
    """
    masks = decode_masks(kept, version)
    for column in version.columns if masks else ():
        if masks.get(column.silver) is _NOTHING:
            raise SchemaMismatch(
                f"column {column.name} is of type {column.type}: {_MASKS} can mask text and whole numbers so",
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
    return replace(version, columns=tuple(_shown(column, masks.get(column.silver)) for column in columns))


def apart(kept: Kept, *versions: TableVersion | None) -> frozenset[int]:
    """Ids of columns outside silver in all of these versions: silver ignores their DDL."""
    if not kept.rules.rules:
        return frozenset()
    every, here = set[int](), set[int]()
    for version in versions:
        for column in version.columns if version is not None else ():
            every.add(column.id)
            if version is not None and kept.takes(version, column):
                here.add(column.id)
    return frozenset(every - here)


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
    return rule.how in (config.MaskKind.NULL, config.MaskKind.CONSTANT) or canonical(column).kind in _TEXTS


def check_kept(kept: Kept, version: TableVersion) -> None:
    """Raise SchemaMismatch where rows can't be followed without the left-out or masked columns."""
    check_clash(kept.rules.names, version)
    for does, section, missing in (
        ("leaves out", _COLUMNS, left_out(kept, [version])),
        ("masks", _MASKS, frozenset(masks_in(kept, version))),
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
    """Raise SchemaMismatch where a column shows another one's masked values plainly. Servers define
    it after that one.
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
                f"column {column.name} is computed from a column that {_MASKS} masks: {expression[:80]}",
                where=version.where,
                remedy=f"name it in {_MASKS} too, with how: plain where it may be seen, or leave it out ({_COLUMNS})",
            )


def check_same(kept: Kept, old: TableVersion, new: TableVersion) -> None:
    """Raise SchemaMismatch where a DDL makes a rule begin, or cease, to hold for a staying
    column.
    """
    for column, section, does in _changes(kept, old, kept, new):
        why = f"{new.ddl[:120]}: {section} {does} column {column.name} from here on"
        raise SchemaMismatch(
            why, where=new.where, remedy=f"name both in {section}; {REBUILD}; {_RULES_BACK.format(section)}"
        )


def check_moved(before: Kept, old: TableVersion, after: Kept, new: TableVersion) -> None:
    """Raise SchemaMismatch where rows come to a table with other rules for their values.

    The versions share ids.
    """
    for column, section, does in _changes(before, old, after, new):
        what = f"{section} {does} column {column.name} of {new.name}, and not so of {old.name}"
        why = f"{new.ddl[:120]}: {what}"
        raise SchemaMismatch(why, where=new.where, remedy=REFILL)


def _changes(before: Kept, old: TableVersion, after: Kept, new: TableVersion) -> Iterator[tuple[Column, str, str]]:
    """Staying columns with other rules: the section of the file, and its present effect."""
    had = {c.id: (before.takes(old, c), before.rules.mask(c.name, c.comment)) for c in old.columns}
    for column in new.columns:
        taken, rule = after.takes(new, column), after.rules.mask(column.name, column.comment)
        was_taken, old_rule = had.get(column.id, (taken, rule))
        if was_taken != taken:
            yield column, _COLUMNS, "keeps" if taken else "leaves out"
        elif taken and old_rule != rule:
            begins = "masks" if old_rule is None else "masks otherwise"
            yield column, _MASKS, "doesn't mask" if rule is None else begins


def check_silver(shape: SilverShape, missing: frozenset[str], state: TableState, due: frozenset[str]) -> None:
    """Raise RuleChanged where silver was made by other rules; SchemaMismatch where another writer took columns.

    It must not have a column for some of its rows. missing: names of the source's columns kept out
    of silver. due: the names of those that it must have already.
    """
    if not state.created:
        return
    own = {str(item["name"]).lower() for item in state.schema["fields"]}  # Delta: case is nothing
    why, section = "", _COLUMNS
    if plain := {name for name in missing if name.lower() in own}:
        why = f"silver has column {_listed(plain)}, which {section} leaves out"
    elif lacking := {c.name for c in shape.columns if c.name in due and not c.computed and c.name.lower() not in own}:
        why = f"silver lacks column {_listed(lacking)}, which the source has and no rule leaves out"
        if state.maps_columns:  # another writer dropped or renamed it: no rule does
            raise SchemaMismatch(why, where=state.place, remedy=read_anew(shape))
    elif other := sorted(_otherwise(shape, state)):
        section, why = _MASKS, f"silver's values of column {_listed(other)} are masked by other rules, or not at all"
    if why:
        raise RuleChanged(why, where=state.place, remedy=made_anew(shape, section))


def _otherwise(shape: SilverShape, state: TableState) -> Iterator[str]:
    """Columns whose values in silver have another mask than the shape's, or one of them has none."""
    wanted = {column.name.lower(): column.mask for column in shape.columns}
    for name, identity in masks_of(state).items():
        if wanted.get(name.lower(), identity) != identity:
            yield name


def masks_of(state: TableState) -> dict[str, str]:
    """The identity of each column's mask by silver's own schema; "" of those without any."""
    if not state.created:
        return {}
    return {str(item["name"]): (item.get("metadata") or {}).get(MASK_METADATA, "") for item in state.schema["fields"]}


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
