"""What YAML reads in another way than people write it: refused, since nothing would show it.

In:  the tree of a pipeline file, before it is made into values.
Out: ConfigError for a repeated key of a mapping (YAML takes the last one); for a number that YAML
     1.1 reads by eights (030) or by sixties (1:30); for 2026-13-45, for YAML a date.
"""

from __future__ import annotations

import re
from typing import Any, Final

import yaml

from tidegate.errors import ConfigError

_INTEGER: Final = "tag:yaml.org,2002:int"
_NUMBERS: Final = (_INTEGER, "tag:yaml.org,2002:float")
_MADE: Final = (*_NUMBERS, "tag:yaml.org,2002:timestamp")
_MERGE: Final = "tag:yaml.org,2002:merge"
_BY_EIGHTS: Final = re.compile(r"[-+]?0[0-7_]+")


def refuse(root: Any, where: str) -> None:
    """Raises ConfigError for the first one; its `where` is file:line."""
    seen, left = set[int](), [root]
    while left:
        node = left.pop()
        if id(node) in seen:  # an alias: once is enough, and one may hold itself
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            _refuse_twice(node, where)
            left += [part for pair in reversed(node.value) for part in reversed(pair)]
        elif isinstance(node, yaml.SequenceNode):
            left += reversed(node.value)
        else:
            _refuse_scalar(node, where)


def _refuse_twice(mapping: Any, where: str) -> None:
    lines = dict[tuple[str, str], int]()
    for key, _ in mapping.value:
        name, line = (key.tag, str(key.value)), key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE:
            continue
        if name in lines:
            raise ConfigError(
                f"{key.value} stands in line {lines[name]} already, and only the last one would count",
                where=f"{where}:{line}",
                remedy="make one of them",
            )
        lines[name] = line


def _refuse_scalar(node: Any, where: str) -> None:
    text, why = str(node.value), ""
    if node.tag not in _MADE:
        return
    if node.tag in _NUMBERS and ":" in text:
        why = "is a number for YAML, counted by sixties"
    elif node.tag == _INTEGER and _BY_EIGHTS.fullmatch(text):
        why = "is a number for YAML, counted by eights"
    else:
        try:
            yaml.constructor.SafeConstructor().construct_object(node)
        except (ValueError, AttributeError):
            why = "isn't the number or the date that YAML takes it for"
    if why:
        raise ConfigError(
            f"{text} {why}",
            where=f"{where}:{node.start_mark.line + 1}",
            remedy="write a number plainly, and put a text in quotes",
        )
