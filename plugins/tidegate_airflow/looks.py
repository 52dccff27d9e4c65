"""Threads of the triggers' own, for their looks at a lake or a server.

In:  a function that blocks, and its arguments.
Out: the function's result, without blocking the triggerer.

asyncio's own pool has only a few more threads than the machine has cores, and everybody uses it. A store that hangs
holds a thread until its answer comes. Other pipelines' wake-ups, and other people's triggers, would wait behind it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, ParamSpec, TypeVar

from tidegate.limits import WATCH_THREADS

P = ParamSpec("P")
R = TypeVar("R")

_LOOKS: Final = ThreadPoolExecutor(WATCH_THREADS, thread_name_prefix="tidegate-look")


async def looked(look: Callable[P, R], *arguments: P.args, **named: P.kwargs) -> R:
    """As asyncio.to_thread."""
    return await asyncio.get_running_loop().run_in_executor(_LOOKS, partial(look, *arguments, **named))
