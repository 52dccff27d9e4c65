"""Names of columns in rules of a pipeline file: regular expressions for the whole name.

In:  texts, as pydantic gets them.
Out: compiled expressions.
"""

from __future__ import annotations

import re
from functools import lru_cache

from tidegate.config.table_keys.table_patterns import ANY_CHARACTER, NOT_COMPILED


def check_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """These regular expressions. Raises ValueError where one is none."""
    for name in names:
        try:
            column_pattern(name)
        except NOT_COMPILED as error:
            raise ValueError(f"{name}: not a regular expression: {error}") from None
    return names


@lru_cache(maxsize=1024)
def column_pattern(name: str) -> re.Pattern[str]:
    """Names of columns don't tell case apart at the source."""
    return re.compile(name, re.IGNORECASE | ANY_CHARACTER)
