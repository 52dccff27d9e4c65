"""Airflow connections that a pipeline file names.

In:  a section of a pipeline file; its keys that name a connection have the type ConnId.
Out: conn_ids(): the names. Whoever keeps a copy of a lake needs these connections beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, TypeAlias, get_args

from pydantic import BaseModel

_MARK: Final = "the name of an Airflow connection"
ConnId: TypeAlias = Annotated[str, _MARK]


def conn_ids(section: BaseModel) -> list[str]:
    """Each once, in the order of the file's keys; those of sections inside it, too."""
    return list(dict.fromkeys(_named(section)))


def _named(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        value = tuple(value.values())
    if isinstance(value, tuple | list):
        for entry in value:
            yield from _named(entry)
    if not isinstance(value, BaseModel):
        return
    for name, field in type(value).model_fields.items():
        inside = getattr(value, name)
        if _MARK in field.metadata or any(_MARK in get_args(part) for part in get_args(field.annotation)):
            if inside is not None:
                yield inside
        else:
            yield from _named(inside)
