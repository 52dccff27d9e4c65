"""Kernels are loaded when they are first called: a process needs a dozen of the 130 that there are.

In:  a function and the signature that it is compiled for.
Out: the same as numba.njit(signature, ...) gives, but what costs 5 CPU-ms a function is done at its first call.

A kernel that calls others has their code in its own: the others are compiled with it, and never loaded from the cache.
It must hold: each has the one signature that stands at it. Left to its callers, numba would compile it anew for
whatever types they have, and a sum of a signed and an unsigned number would become a float.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba.core import typeinfer
from numba.core.compiler_lock import global_compiler_lock

_known: list[tuple[str, Callable[[], None]]] = []  # with the name of the module


def compiled(signature: Any, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """In place of numba.njit(signature, **options)."""

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = numba.njit(**options)(function)

        def load() -> None:
            with global_compiler_lock:
                if dispatcher._can_compile and not dispatcher.is_compiling:  # noqa: SLF001 - as numba.jit does
                    with typeinfer.register_dispatcher(dispatcher):
                        dispatcher.compile(signature)
                    dispatcher.disable_compile()

        def at_call(*_arguments: Any, **_named: Any) -> Any:
            load()
            return dispatcher  # numba calls what it is given here, with the arguments

        def in_another(arguments: Any, named: Any) -> Any:
            load()
            return type(dispatcher).get_call_template(dispatcher, arguments, named)

        dispatcher._compile_for_args = at_call  # noqa: SLF001 - called for arguments that nothing is compiled for
        dispatcher.get_call_template = in_another
        _known.append((function.__module__, load))
        return dispatcher

    return decorate


def load_all(module: str = "") -> None:
    """Load, or compile and cache, every kernel of a module, or of all that are imported so far."""
    for name, load in _known:
        if name.startswith(module):
            load()
