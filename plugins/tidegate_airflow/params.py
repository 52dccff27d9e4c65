"""A pipeline file's settings as the fields of Airflow's trigger form, and back.

In:  the Capture or Apply part of a pipeline (types, bounds, descriptions), the file's values as defaults.
Out: Airflow Params; and from a run's params the part to use in that run, checked by the same model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from airflow.sdk import Param
from pydantic import BaseModel

from tidegate.pipelines import overlay

_NAMED: Final = "names, or patterns as in tables.include of the pipeline file"

Part = TypeVar("Part", bound=BaseModel)


def params_of(part: BaseModel) -> dict[str, Param]:
    """One described, bounded Param per field of a pipeline's part; its default is the file's value."""
    schema = part.model_json_schema()
    values = part.model_dump(mode="json")
    return {
        name: Param(values[name], **_form_field(name, field, schema.get("$defs", {})))
        for name, field in schema["properties"].items()
    }


def tables_param(description: str) -> Param:
    """The param of a run that is for some tables."""
    return Param([], title="Tables", type="array", items={"type": "string"}, description=f"{description} ({_NAMED})")


def with_params(part: Part, params: Mapping[str, Any], *, where: str) -> Part:
    """The part with a run's params in place of the file's values.

    Raises ConfigError, `where` being the DAG run, when a value is out of bounds.
    """
    chosen = {name: params[name] for name in type(part).model_fields if name in params}
    return overlay(part, chosen, where=where, what="param", remedy="trigger the run again with a value that fits")


def manual(text: str | None, params: Mapping[str, Param]) -> str:
    """A DAG file's docstring and its params with their defaults: the DAG's manual, as Markdown."""
    lines = "\n".join(
        f"- `{name}` (`{json.dumps(param.value)}`): {param.description}" for name, param in params.items()
    )
    return f"{text or ''}\n**Params** (of a run started by hand; the defaults are the pipeline file's):\n\n{lines}\n"


def _form_field(name: str, field: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """JSON schema of a pydantic field in the flat form that Airflow's trigger form draws."""
    flat: dict[str, Any] = {"title": name.replace("_", " ").capitalize(), "description": field["description"]}
    branches = field.get("anyOf") or [field]
    kinds: list[str] = []
    for branch in branches:
        resolved = definitions[branch["$ref"].rsplit("/", 1)[-1]] if "$ref" in branch else branch
        kinds.append(resolved["type"])
        flat |= {key: resolved[key] for key in _BOUNDS if key in resolved}
    flat["type"] = kinds if len(kinds) > 1 else kinds[0]
    return flat


# JSON schema keys that both pydantic writes and Airflow's form understands.
_BOUNDS = ("enum", "minimum", "maximum", "exclusiveMinimum", "pattern", "minLength", "additionalProperties")
