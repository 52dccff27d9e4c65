"""Load a kernel at its first call: a process needs a dozen of the 130 kernels.

In:  a function and the signature that it is compiled for.
Out: the same as numba.njit(signature, ...) gives, but what costs 5 CPU-ms a function is done at its first call.

A kernel has the code of the kernels that it calls: they are compiled with it, and never loaded from the cache. Each
kernel must have exactly the signature that is declared for it. Otherwise numba would compile it again for its callers'
types, and a sum of a signed and an unsigned number would become a float.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba.core import typeinfer
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher

_known: list[tuple[str, Callable[[], None]]] = []  # with the name of the module


class _Unloaded(CPUDispatcher):  # type: ignore[misc]  # numba has no types
    """A kernel before its first call. It must be loaded before numba looks at the arguments. Otherwise, if another
    thread loads it at the same time, numba demands exact types (a writable array isn't a read-only one), as for a
    kernel that can still be compiled for them. It then finds that this one can't be: a TypeError.
    """

    load: Callable[[], None]

    def __call__(self, *arguments: Any) -> Any:
        self.load()
        return CPUDispatcher.__call__(self, *arguments)  # loading has given it its own class back


def compiled(signature: Any, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """In place of numba.njit(signature, **options)."""

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = numba.njit(**options)(function)
        own_class = type(dispatcher)

        def load() -> None:
            with global_compiler_lock:
                if dispatcher._can_compile and not dispatcher.is_compiling:  # noqa: SLF001 - as numba.jit does
                    with typeinfer.register_dispatcher(dispatcher):
                        dispatcher.compile(signature)
                    dispatcher.disable_compile()
                    dispatcher.__class__ = own_class  # later calls cost nothing more

        def in_another(arguments: Any, named: Any) -> Any:
            load()
            return own_class.get_call_template(dispatcher, arguments, named)

        dispatcher.get_call_template = in_another
        dispatcher.load, dispatcher.__class__ = load, _Unloaded
        _known.append((function.__module__, load))
        return dispatcher

    return decorate


def load_all(module: str = "") -> None:
    """Load, or compile and cache, every kernel of a module, or of all that are imported so far."""
    for name, load in _known:
        if name.startswith(module):
            load()
