"""Functions in Python that compute a column of silver: entry points of installed distributions.

In:  the name of an entry point in the group `tidegate.functions`, its arguments as Arrow.
Out: Installed, with the distribution's version; its values, checked. ValueError without such a function,
     WrongValuesError without values for rows.

A function is called in the driver and in verify, and in no worker: a worker may lack it, and has no such rights. The
version is read before the code is loaded, and both stay until the process ends: they belong together. All functions of
a distribution share modules, and so the version of the first one that was loaded.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from importlib.metadata import Distribution

    import pyarrow as pa

GROUP: Final = "tidegate.functions"
_SHOWN: Final = 8

_loading = threading.Lock()
_versions: dict[str, str] = {}  # of the distributions that are loaded, by name


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
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  another's code: sys.exit() would end apply as if all were well
            raise WrongValuesError(f"{self} raises {type(error).__name__}", raised=True) from None
        if not isinstance(given, pa.Array):
            raise WrongValuesError(f"{self} gives a {type(given).__name__}, and no pyarrow.Array")
        if len(given) != rows:
            raise WrongValuesError(f"{self} gives {len(given)} values for {rows} rows")
        if given.type != kind:
            raise WrongValuesError(f"{self} gives values of type {given.type}, and the rule's type is {kind}")
        try:
            given.validate(full=True)  # readers of silver take lengths, digits and UTF-8 on trust
        except pa.ArrowInvalid:  # its text may quote a value
            raise WrongValuesError(f"{self} gives an invalid array of {kind}") from None
        # A copy: numpy's memory is taken as it is, and the function may write the next call's values there.
        return pa.concat_arrays([given, given.slice(0, 0)])


@cache
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
    distribution = point.dist.name
    with _loading:
        version = _version(point.dist)
        try:
            call = point.load()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # another's module, which may raise anything
            raise ValueError(f"function {name} of {distribution} {version} can't be loaded: {error!r}") from error
        if not callable(call):
            raise ValueError(f"function {name} of {distribution} {version} isn't a function")  # noqa: TRY004  (all one kind)
        _versions[distribution] = version
    return Installed(name, distribution, version, call)


def forget() -> None:
    """Look for all functions anew. Their modules stay loaded."""
    _versions.clear()
    installed.cache_clear()


def _version(of: Distribution) -> str:
    """The version of the code that would be called. Raises ValueError where another code may have the same one."""
    name = of.name
    version = of.metadata["Version"] if "Version" in of.metadata else ""  # noqa: SIM401  (its type has no get)
    if not version:
        raise ValueError(f"distribution {name} has no version")
    if (json.loads(of.read_text("direct_url.json") or "{}").get("dir_info") or {}).get("editable"):
        raise ValueError(
            f"distribution {name} {version} is an editable installation: its files change, and its version stays;"
            " install it without --editable"
        )
    if _versions.get(name, version) != version:
        raise ValueError(
            f"distribution {name} {_versions[name]} is loaded here, and {version} is installed by now: start this"
            " process anew"
        )
    return str(version)
