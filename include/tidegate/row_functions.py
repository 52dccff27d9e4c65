"""Functions in Python that compute a column of silver: entry points of installed distributions.

In:  the name of an entry point in the group `tidegate.functions`, its arguments as Arrow.
Out: Installed, with the distribution's version; its values, checked. ValueError without such a function,
     WrongValuesError without values for rows.

A function is called in the driver and in verify, and in no worker: a worker may lack it, and has no such rights. The
version is read before the code is loaded, and both stay until the process ends: they belong together.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pyarrow as pa

GROUP: Final = "tidegate.functions"
_SHOWN: Final = 8


class WrongValuesError(Exception):
    """A function has no values for rows; the reason shows none of theirs. raised: by the function, perhaps
    for one of the rows; else its answer has another form.
    """

    def __init__(self, why: str, *, raised: bool = False) -> None:
        super().__init__(why)
        self.raised = raised


@dataclass(frozen=True, slots=True)
class Installed:
    """name: of the entry point. distribution, version: whose it is."""

    name: str
    distribution: str
    version: str
    call: Callable[..., Any]
    _one_by_one: Any = field(default_factory=threading.Lock, compare=False, repr=False)

    def __str__(self) -> str:
        return f"function {self.name} of {self.distribution} {self.version}"

    def values(self, arguments: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
        """A value of this type for each row; one caller at a time. Raises WrongValuesError."""
        import pyarrow as pa

        rows = len(arguments[0])
        try:
            with self._one_by_one:
                given = self.call(*arguments)
        except Exception as error:  # noqa: BLE001  (another's code, which may raise anything)
            raise WrongValuesError(f"{self} raises {type(error).__name__}", raised=True) from None
        if not isinstance(given, pa.Array):
            raise WrongValuesError(f"{self} gives a {type(given).__name__}, and no pyarrow.Array")
        if len(given) != rows:
            raise WrongValuesError(f"{self} gives {len(given)} values for {rows} rows")
        if given.type != kind:
            raise WrongValuesError(f"{self} gives values of type {given.type}, and the rule's type is {kind}")
        return given


@lru_cache(maxsize=256)
def installed(name: str) -> Installed:
    """The function of an entry point, loaded. Raises ValueError without one, or with several."""
    from importlib.metadata import entry_points

    every = entry_points(group=GROUP)
    # A distribution that lies twice on the path is one: Python imports the first.
    those = {
        (point.dist.name if point.dist else "", point.value): point for point in reversed([*every.select(name=name)])
    }
    if not those:
        known = ", ".join(sorted(every.names)[:_SHOWN]) or "none"
        raise ValueError(f"no function {name} is installed here (entry points in the group {GROUP}: {known})")
    if len(those) > 1:
        raise ValueError(f"function {name} is in several distributions: {', '.join(sorted(of for of, _ in those))}")
    (point,) = those.values()
    if point.dist is None:
        raise ValueError(f"function {name} is in no distribution, so its version isn't known")
    distribution, version = point.dist.name, point.dist.version
    try:
        call = point.load()
    except Exception as error:  # another's module, which may raise anything
        raise ValueError(f"function {name} of {distribution} {version} can't be loaded: {error!r}") from error
    if not callable(call):
        raise ValueError(f"function {name} of {distribution} {version} isn't a function")  # noqa: TRY004  (all one kind)
    return Installed(name, distribution, version, call)
