"""Settings over a pipeline file: from a form, as arguments of a job, and back.

In:  a part of a pipeline (capture, apply, maintain), values by key.
Out: the part with these values, checked by its own model; the same values as `--set KEY=JSON`.

One form for all: a value is JSON. Null is therefore nothing, a number a number, and any other text is itself, as a
person writes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from tidegate.config import Pipeline
from tidegate.errors import ConfigError

Part = TypeVar("Part", bound=BaseModel)


def overlay(part: Part, values: Mapping[str, Any], *, where: str, what: str, remedy: str) -> Part:
    """The part with these values in place of its own. Raises ConfigError: "<what> <key>: ..." at `where`."""
    try:
        return type(part).model_validate({**part.model_dump(mode="json"), **values})
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(step) for step in first["loc"])
        raise ConfigError(f"{what} {key}: {first['msg']}", where=where, remedy=remedy) from error


def with_settings(pipeline: Pipeline, name: str, settings: Sequence[str]) -> Pipeline:
    """The pipeline with `KEY=VALUE` settings on top of one of its parts. Raises ConfigError."""
    part = overlay(
        getattr(pipeline, name), decoded(settings), where="command line", what="--set", remedy="give a value that fits"
    )
    return pipeline.model_copy(update={name: part})


def encoded(part: BaseModel, file: BaseModel) -> list[str]:
    """The arguments that give a job with the file the same part: each difference as --set KEY=JSON."""
    before = file.model_dump(mode="json")
    return [
        item
        for name, value in part.model_dump(mode="json").items()
        if value != before[name]
        for item in ("--set", f"{name}={json.dumps(value)}")
    ]


def decoded(settings: Sequence[str]) -> dict[str, Any]:
    """The meaning of `KEY=VALUE` texts. Raises ConfigError for one without a value."""
    if odd := [item for item in settings if "=" not in item]:
        raise ConfigError(f"--set {odd[0]} has no value", where="command line", remedy="write KEY=VALUE")
    return {name: _value(text) for name, text in (item.split("=", 1) for item in settings)}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
