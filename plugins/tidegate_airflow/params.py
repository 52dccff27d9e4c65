"""Settings for one run, which a person gives in Airflow's trigger form, and their use in that run.

In:  a part of a pipeline file (types, bounds, descriptions, values), a run's params.
Out: Airflow Params; and the part to use in that run, checked by its own model.

Whoever may trigger a run needn't be the writer of the pipeline file. A run therefore takes only the settings of
ON_THE_FORM. All others come from the file alone, also if a run is triggered over the API, which takes any JSON.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, Final, TypeVar

from airflow.sdk import Param
from pydantic import BaseModel

from tidegate.config import Apply, Capture, Maintain, Snapshot, Verify
from tidegate.errors import ConfigError
from tidegate.pipelines import overlay

_NAMED: Final = "names, or patterns as in tables.include of the pipeline file"

# Each changes how a run works, never what silver is in the end, what is deleted, nor which program, folder, host or
# connection is used.
ON_THE_FORM: Final[Mapping[type[BaseModel], tuple[str, ...]]] = {
    Capture: (
        "run_for_seconds",  # a short run, before the worker is taken down
        "failover_wait_seconds",  # longer for a replica that is known to be slow
    ),
    Apply: (
        "mode",  # batch: apply what is there, and end
        "parallel_tables",  # more, to catch up; one, when memory is short
        "writer",  # merge, when the positional writer is in doubt
    ),
    Maintain: (
        "cluster_share",  # 0: each table is clustered again now
        "purge_share",  # 0: deleted rows leave the files now
        "bronze_bytes",  # how much is packed in this run
    ),
    Snapshot: (
        "parallel",  # both: how much of the source this run takes, by day or by night
        "bytes_per_second",
    ),
    Verify: ("rows_per_second",),  # how much of the source this run takes
}

Part = TypeVar("Part", bound=BaseModel)


def params_of(part: BaseModel) -> dict[str, Param]:
    """A described, bounded Param for each setting that a run may change; its default is the file's value."""
    schema = part.model_json_schema()
    values = part.model_dump(mode="json")
    return {
        name: Param(values[name], **_form_field(name, schema["properties"][name], schema.get("$defs", {})))
        for name in ON_THE_FORM[type(part)]
    }


def tables_param(description: str) -> Param:
    """The param of a run that is for some tables."""
    kinds = ["null", "array"]  # without null Airflow's form demands a name
    return Param([], title="Tables", type=kinds, items={"type": "string"}, description=f"{description} ({_NAMED})")


def with_params(part: Part, params: Mapping[str, Any], *, where: str, beside: Collection[str] = ()) -> Part:
    """The part with a run's params in place of the file's values. beside: names of the DAG's other params.

    Raises ConfigError if a value is out of bounds, or if a run may not change it. where: the DAG run.
    """
    form = ON_THE_FORM[type(part)]
    _refuse_others(part, {name: value for name, value in params.items() if name not in {*form, *beside}}, where)
    chosen = {name: params[name] for name in form if name in params}
    return overlay(part, chosen, where=where, what="param", remedy="trigger the run again with a value that fits")


def _refuse_others(part: BaseModel, given: Mapping[str, Any], where: str) -> None:
    """Refuse other settings. A value equal to the file's passes, since it changes nothing. The error has no value: it
    may be a secret.
    """
    values = part.model_dump(mode="json")
    changed = sorted(name for name, value in given.items() if name not in values or values[name] != value)
    if not changed:
        return
    raise ConfigError(
        f"a run may not set {', '.join(changed)}",
        where=where,
        remedy=f"write settings into the pipeline file; a run's own are {', '.join(ON_THE_FORM[type(part)])}",
    )


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


# Keys of JSON schema that pydantic writes and Airflow's form understands.
_BOUNDS = ("enum", "minimum", "maximum", "exclusiveMinimum", "pattern", "minLength", "additionalProperties")
