"""A context manager that is made of several: all of them are entered, or none stays.

In:  a class with `_begin`, which enters what it is made of.
Out: Whole; everything that `_begin` entered is left with it, in the other order, and at once if one can't be entered.
"""

from __future__ import annotations

import contextlib
from typing import Self


class Whole:
    """stack: what is left at the end."""

    def __init__(self) -> None:
        self.stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with self.stack:
            self._begin()
            self.stack = self.stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self.stack.__exit__(*error)

    def _begin(self) -> None:
        raise NotImplementedError
