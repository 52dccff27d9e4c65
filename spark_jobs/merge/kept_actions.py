"""The effects of a DDL on a silver table with left-out or masked columns.

In:  actions from one version of the source's table to the next, the rules of the pipeline file.
Out: actions on the columns that silver has, with masked values and their types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from spark_jobs.merge.silver_writer import SilverWriter
from spark_jobs.window.shape.shapes import kept_of
from tidegate.columnar.dates import refused_date
from tidegate.masks.masking import Mask
from tidegate.merge.kept import in_silver, masks_in
from tidegate.schema.follow.recast import VALUE
from tidegate.schema.follow.silver_change import (
    AddSilverColumn,
    ChangeType,
    SilverAction,
    ValuesRewritten,
)
from tidegate.schema.model.columns import Column, TableVersion
from tidegate.schema.model.types import ZeroDates, canonical


def actions_in_silver(
    writer: SilverWriter, actions: Sequence[SilverAction], old: TableVersion, new: TableVersion
) -> Sequence[SilverAction]:
    """Actions as silver has their columns, which keep their masks (choose_writers). Raises UnsupportedValue for added
    columns with a zero date, where that holds the table.
    """
    _check_dates(writer, actions, new)
    kept = kept_of(writer.app, writer.entry)
    if not (masks := masks_in(kept, new)):
        return actions
    types = {column.id: canonical(column).delta for column in old.columns}
    shown = {column.silver: column for column in in_silver(kept, new).columns}
    return [made for action in actions if (made := _masked(action, masks, shown, types)) is not None]


def _check_dates(writer: SilverWriter, actions: Sequence[SilverAction], new: TableVersion) -> None:
    """Rows with such a date in the log hold their table, so those that a statement gives it do as well."""
    holds = ZeroDates(writer.app.pipeline.apply.zero_dates) is ZeroDates.ERROR
    for action in actions:
        if isinstance(action, AddSilverColumn) and action.is_no_date:
            column, in_key = action.column, action.column.id in new.key
            if holds or in_key:
                raise refused_date(column.name, column.default or "0000-00-00", key=in_key)


def _masked(
    action: SilverAction, masks: Mapping[str, Mask], shown: Mapping[str, Column], types: Mapping[int, str]
) -> SilverAction | None:
    """The action on silver's column; None if the masked values and their type stay as they are.

    shown: columns as silver has them. types: by id, of the columns before.
    """
    match action:
        case AddSilverColumn() if (mask := masks.get(action.column.silver)) is not None:
            value = None if action.value is None else mask.value(action.value, canonical(action.column).arrow)
            return AddSilverColumn(shown[action.column.silver], value)
        case ChangeType() if action.name in masks and not masks[action.name].is_null:
            return None
        case ValuesRewritten() if (mask := masks.get(action.column.silver)) is not None:
            if mask.is_null:
                before, now = types[action.column.id], canonical(action.column).delta
                return None if before == now else ChangeType(action.column.silver, before, now)
            how = action.recast
            stays = how is not None and how.value == VALUE and (how.doubt == "false" or how.only_nulls)
            return replace(action, column=shown[action.column.silver], recast=how if stays else None)
    return action
