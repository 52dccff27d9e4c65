"""What an error tells a person to do is something that can be done: its commands exist, and so does what they take."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tidegate.cli.main import COMMANDS, load

ROOT = Path(__file__).parents[2]
FOLDERS = ("include/tidegate", "spark_jobs", "plugins", "dags")
# In quotes or backticks, or behind a colon: `tidegate schema judge PIPELINE`, then: tidegate release {pipeline} {table}
_MENTION = re.compile(r"(?:`|then: |; or |'|\")tidegate ((?:[a-z]+(?:-[a-z]+)* ?){1,2})((?:[^`\n;]*?--[a-z-]+)*)")
_NOT_THERE = re.compile(
    r"\b(?:take (?:a |new )*snapshots?|snapshot (?:the|it)|take a (?:new )?baseline|capture the segment again)\b",
    re.IGNORECASE,
)


def _sources() -> dict[str, str]:
    files = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")]
    return {str(file.relative_to(ROOT)): file.read_text() for file in files}


def test_no_remedy_names_what_does_not_exist_yet() -> None:
    assert not [
        f"{name}:{text[: found.start()].count(chr(10)) + 1}: {found[0]}"
        for name, text in _sources().items()
        for found in _NOT_THERE.finditer(text)
    ]


def test_every_command_that_is_mentioned_exists_with_its_options() -> None:
    seen, wrong = set[str](), []
    for name, text in _sources().items():
        for found in _MENTION.finditer(text):
            words, options = found[1].split(), re.findall(r"--[a-z-]+", found[2])
            command: Any = load(words[0]) if words[0] in COMMANDS else None
            if hasattr(command, "commands") and len(words) > 1:
                command = command.commands.get(words[1])
            known = {option for parameter in command.params for option in parameter.opts} if command else set()
            if command is None or not known.issuperset(options):
                wrong.append(f"{name}: tidegate {' '.join([*words, *options])}")
            seen.add(words[0])
    assert not wrong, "\n".join(wrong)
    assert {"release", "schema"} <= seen, "the pattern finds what is there"
