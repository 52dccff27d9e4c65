"""Read a pipeline file; errors name its line and key.

In:  a YAML file, or its text.
Out: a Pipeline; ConfigError for what can't be one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from tidegate.config import mistakes, yaml_gotchas
from tidegate.config.pipeline import Pipeline
from tidegate.errors import ConfigError

# The C loader (libyaml) takes a tenth of the CPU. PyYAML's wheels have it.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


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
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"the pipeline file isn't UTF-8 at byte {error.start}", where=str(path), remedy="write it as UTF-8"
        ) from error
    return parse(text, where=str(path))


def parse(text: str, *, where: str) -> Pipeline:
    """Check the text of a pipeline file; `where` names it in errors."""
    try:
        node, data = _read(text, where)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{where}:{mark.line + 1}" if mark else where
        raise ConfigError(
            f"not valid YAML: {getattr(error, 'problem', error)}",
            where=place,
            remedy="correct the file; indent by spaces, never by tabs",
        ) from error
    if not isinstance(data, dict):
        raise ConfigError("a pipeline file is a mapping", where=f"{where}:1", remedy="start it with `pipeline: <name>`")
    try:
        return Pipeline.model_validate(data)
    except ValidationError as error:
        raise mistakes.as_one(error, where, lambda keys: _line_of(node, keys)) from error


def _read(text: str, where: str) -> tuple[Any, Any]:
    """The YAML tree, whose nodes know their lines, and its values. Raises yaml.YAMLError, ConfigError."""
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None, None
        yaml_gotchas.refuse(node, where)
        return node, loader.construct_document(node)
    finally:
        loader.dispose()


def _line_of(node: Any, keys: list[str]) -> int:
    """Line (from 1) of the deepest key that exists in the YAML tree."""
    line = 1
    for key in keys:
        if isinstance(node, yaml.MappingNode):
            pair = next(((k, v) for k, v in node.value if k.value == key), None)
            if pair is None:
                return line
            line, node = pair[0].start_mark.line + 1, pair[1]
        elif isinstance(node, yaml.SequenceNode) and key.isdigit() and int(key) < len(node.value):
            node = node.value[int(key)]
            line = node.start_mark.line + 1
    return line
