"""The table of pipeline keys in the papers, from the model itself.

In:  tidegate.config.Pipeline: names, defaults, descriptions.
Out: a Markdown table between two marks of a file; with --check only whether it is there as it should be.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from tidegate.config import Pipeline

START = "<!-- pipeline keys: written by `make docs` -->"
END = "<!-- end of pipeline keys -->"
USAGE_EXIT = 2


def rows(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """(key, default, meaning) of each key, in the model's order; a map's or list's element is `<name>` or `[]`."""
    for name, field in model.model_fields.items():
        inner, mark = _inner(field.annotation)
        if not inner:
            yield prefix + name, _default(field), field.description or ""
        for number, one in enumerate(inner):
            kind = f"({one.__name__.removesuffix('Source')}) " if number else ""
            for key, default, meaning in rows(one, f"{prefix}{name}{mark}."):
                yield key, default, kind + meaning


def table() -> str:
    lines = ["| key | default | meaning |", "|---|---|---|"]
    for key, default, meaning in rows(Pipeline):
        escaped = meaning.replace("|", r"\|").replace("<", "&lt;")
        lines.append(f"| `{key}` | {default} | {escaped} |")
    return "\n".join(lines)


def _inner(annotation: Any) -> tuple[list[type[BaseModel]], str]:
    """The models that a key holds; several are kinds of one thing."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation], ""
    marks = {dict: ".<name>", tuple: "[]", list: "[]"}
    found = [model for argument in get_args(annotation) for model in _inner(argument)[0]]
    return found, marks.get(get_origin(annotation) or type(None), "")


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "**required**"
    value = field.default if field.default is not PydanticUndefined else field.get_default(call_default_factory=True)
    if isinstance(value, Enum):
        value = value.value
    return "" if value in (None, (), {}, "") else f"`{value}`"


def main(arguments: list[str]) -> int:
    match arguments:
        case ["--check" | "--write" as what, name]:
            path = Path(name)
        case _:
            print("usage: pipeline_keys.py --check|--write FILE", file=sys.stderr)
            return USAGE_EXIT
    text = path.read_text(encoding="utf-8")
    head, start, rest = text.partition(START)
    _, end, tail = rest.partition(END)
    if not start or not end:
        print(f"{path}: has no lines {START} and {END}", file=sys.stderr)
        return 1
    wanted = f"{head}{START}\n{table()}\n{END}{tail}"
    if what == "--write":
        path.write_text(wanted, encoding="utf-8")
    elif text != wanted:
        print(
            f"{path}: the table of pipeline keys isn't what include/tidegate/config/ says; run make docs",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
