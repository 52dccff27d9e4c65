"""All mistakes in a pipeline file as one error, in words for its author; unknown keys come first.

In:  pydantic's findings, and the line of a key.
Out: a ConfigError: `where` has the first mistake's line, the text each mistake, the remedy the keys that there are.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError

from tidegate.config.pipeline import Pipeline
from tidegate.config.source_keys.sources import KINDS, MysqlSource
from tidegate.errors import ConfigError

_SHOWN_MAX: Final = 5  # one line of a terminal's log is still read
_MEMBER: Final = re.compile(r"<[\w.]+: ('\w+')>")  # of an enum, as pydantic shows it

# pydantic's kinds of mistakes whose own words are about Python.
_WORDS: Final = {
    "missing": "is missing",
    "tuple_type": "must be a list, in brackets: [a, b]",
    "dict_type": "must be a mapping: {key: value}",
    "model_type": "must be a mapping: {key: value}",
    "model_attributes_type": "must be a mapping: {key: value}",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "string_type": "must be text: put it in quotes",
    "too_short": "must not be empty",
}
# What a text of this key must be, where it isn't; without the text, which may have a password in it.
_FORMS: Final = {
    "status_url": "must be http://host:port or https://host:port, without a login",
    "advertise": "must be host:port",
    "driver_memory": "must be a whole number and m or g, as 2g",
    "to": "must be database.table, each without a dot",
    "name": "must be a letter, then letters, digits and _",
    "notifier": "must be the whole name of a class, as package.module.Class",
}
# SQL's words for what a key names otherwise.
_OTHER_WORDS: Final = {"modify_column": "change_type", "alter_column": "change_type"}


def as_one(error: ValidationError, where: str, line_of: Callable[[list[str]], int]) -> ConfigError:
    """line_of: keys from the file's root -> the line (from 1) of the deepest of them that is there."""
    mistakes = [(_keys(mistake), mistake) for mistake in error.errors()]
    mistakes.sort(key=lambda pair: pair[1]["type"] != "extra_forbidden")
    meant = {(*keys[:-1], _meant(keys, mistake)) for keys, mistake in mistakes if mistake["type"] == "extra_forbidden"}
    # A misspelt key is also a missing one: that counts as one mistake.
    mistakes = [
        (keys, mistake) for keys, mistake in mistakes if mistake["type"] != "missing" or tuple(keys) not in meant
    ]
    texts = [_words(keys, mistake) for keys, mistake in mistakes[:_SHOWN_MAX]]
    texts[1:] = [f"line {line_of(keys)}: {text}" for (keys, _), text in zip(mistakes[1:], texts[1:], strict=False)]
    if len(mistakes) > _SHOWN_MAX:
        texts.append(f"and {len(mistakes) - _SHOWN_MAX} more")
    keys, first = mistakes[0]
    remedy = "correct this value" if len(mistakes) == 1 else "correct these values"
    if first["type"] == "extra_forbidden":
        meant_key = _meant(keys, first)
        remedy = f"known keys here: {', '.join(_owner(keys, first).model_fields)}"
        remedy = f"did you mean {meant_key}? {remedy}" if meant_key else remedy
    elif first["type"] == "missing":
        remedy = "add this key; docs/pipeline.md has all of them"
    return ConfigError("; ".join(texts), where=f"{where}:{line_of(keys)}", remedy=remedy)


def _keys(mistake: Any) -> list[str]:
    return [str(key) for key in mistake["loc"] if key not in ("[key]", *KINDS)]


def _words(keys: list[str], mistake: Any) -> str:
    return f"{'.'.join(keys) or 'file'}: {_said(keys, mistake)}"


def _said(keys: list[str], mistake: Any) -> str:
    kind, given = mistake["type"], mistake["input"]
    if kind == "extra_forbidden":
        return "unknown key"
    if kind in ("enum", "literal_error"):
        choices = _MEMBER.sub(r"\1", mistake["ctx"]["expected"])
        more = "; of TiDB 'tidb' or 'ticdc'" if keys[-1] == "flavour" else ""
        return f"is {given!r}, and must be {choices}{more}"
    if kind == "string_pattern_mismatch" and (keys == ["pipeline"] or (keys[0] == "sources" and len(keys) == 2)):
        return f"{given!r} must be a letter, then letters, digits and _, 64 at most"
    if kind == "string_pattern_mismatch" and keys[-1] in _FORMS:
        return _FORMS[keys[-1]]
    if kind in _WORDS:
        return _WORDS[kind]
    text = str(mistake["msg"]).removeprefix("Value error, ")
    return text[0].lower() + text[1:].replace("nput should be", "nput must be")


def _meant(keys: list[str], mistake: Any) -> str:
    key, known = keys[-1], _owner(keys, mistake).model_fields
    if (other := _OTHER_WORDS.get(key)) in known:
        return str(other)
    near = get_close_matches(key, known, n=1)
    return near[0] if near and _is_misspelt(key, near[0]) else ""


def _is_misspelt(key: str, known: str) -> bool:
    """Not where two words are alike by their common end alone: `modify_column` is no misspelt `add_column`."""
    (begin, _, end), (known_begin, _, known_end) = key.rpartition("_"), known.rpartition("_")
    return end != known_end or bool(get_close_matches(begin, [known_begin]))


def _owner(keys: list[str], mistake: Any) -> type[BaseModel]:
    """The section that a key is in."""
    owner: type[BaseModel] = Pipeline
    for key in keys[:-1]:
        if key == "sources":
            owner = next((kind for mark, kind in KINDS.items() if mark in mistake["loc"]), MysqlSource)
        elif key in owner.model_fields:
            owner = _section_in(owner.model_fields[key].annotation) or owner
    return owner


def _section_in(annotation: Any) -> type[BaseModel] | None:
    """The first section in the type of a key: itself, or one of a list or a mapping."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((section for part in get_args(annotation) if (section := _section_in(part)) is not None), None)
