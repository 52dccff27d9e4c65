"""States of Delta tables as tests want them, without a log."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tidegate.delta.table.actions import add, metadata, protocol
from tidegate.delta.table.state import TableState


def table_state(
    fields: Sequence[Mapping[str, Any]],
    configuration: Mapping[str, str],
    *,
    features: Iterable[str] = (),
    partitions: Sequence[str] = (),
    files: Iterable[Mapping[str, Any]] = (),
) -> TableState:
    """Version 0 of a table; files: `add` bodies."""
    schema = json.loads(json.dumps({"type": "struct", "fields": list(fields)}))
    made = [protocol(features), metadata(schema, configuration, partition_columns=partitions)]
    return TableState("t").after(0, made + [add(body, data_change=True) for body in files])
