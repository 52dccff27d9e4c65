"""Read a pipeline file; errors name its line and key.

In:  a YAML file, or its text.
Out: a Pipeline; ConfigError for what can't be one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from tidegate.config.pipeline import Pipeline
from tidegate.config.sources import KINDS, MysqlSource
from tidegate.errors import ConfigError


def load(path: Path) -> Pipeline:
    """Read a pipeline file.

    Raises ConfigError whose `where` is file:line and whose text names the key.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"can't read the pipeline file: {error.strerror}",
            where=str(path),
            remedy="give a file under include/pipelines",
        ) from error
    return parse(text, where=str(path))


def parse(text: str, *, where: str) -> Pipeline:
    """Check the text of a pipeline file; `where` names it in errors."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{where}:{mark.line + 1}" if mark else where
        raise ConfigError(
            f"not valid YAML: {getattr(error, 'problem', error)}", where=place, remedy="mend the file"
        ) from error
    if not isinstance(data, dict):
        raise ConfigError("a pipeline file is a mapping", where=f"{where}:1", remedy="start it with `pipeline: <name>`")
    try:
        return Pipeline.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        keys = [str(key) for key in first["loc"] if key not in ("[key]", *KINDS)]
        line = _line_of(node, keys)
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        what = "unknown key" if first["type"] == "extra_forbidden" else first["msg"][0].lower() + first["msg"][1:]
        raise ConfigError(
            f"{'.'.join(keys) or 'file'}: {what}{more}",
            where=f"{where}:{line}",
            remedy=_hint(first["type"], keys, first["loc"]),
        ) from error


def _line_of(node: Any, keys: list[str]) -> int:
    """Line (from 1) of the deepest key that exists in the YAML tree."""
    line = 1
    for key in keys:
        if isinstance(node, yaml.MappingNode):
            found = next(((k, v) for k, v in node.value if k.value == key), None)
            if found is None:
                return line
            line, node = found[0].start_mark.line + 1, found[1]
        elif isinstance(node, yaml.SequenceNode) and key.isdigit() and int(key) < len(node.value):
            node = node.value[int(key)]
            line = node.start_mark.line + 1
    return line


def _hint(kind: str, keys: list[str], path: tuple[int | str, ...]) -> str:
    if kind != "extra_forbidden":
        return "mend this value"
    owner: type[BaseModel] = Pipeline
    for key in keys[:-1]:
        annotation = owner.model_fields[key].annotation if key in owner.model_fields else None
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            owner = annotation
        elif key == "sources":
            owner = next((kind for mark, kind in KINDS.items() if mark in path), MysqlSource)
    return f"known keys here: {', '.join(owner.model_fields)}"
