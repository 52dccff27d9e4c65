"""Kernels are compiled at their first call, for the one signature that stands at them."""

from __future__ import annotations

import ast
import threading
from pathlib import Path
from typing import Any

import numpy as np
from numba import types

import tidegate
from tidegate.columnar import kernel
from tidegate.compiled import compiled


def test_nothing_is_compiled_before_the_first_call() -> None:
    @compiled(types.int64(types.int64), boundscheck=False)
    def twice(number: int) -> int:
        return number * 2

    assert not twice.overloads
    assert twice(21) == 42
    assert twice(True) == 2, "converted, not compiled anew"
    assert [str(one) for one in twice.nopython_signatures] == ["(int64,) -> int64"]


def test_called_by_another_kernel_it_keeps_its_own_signature() -> None:
    @compiled(types.uint64(types.uint64, types.uint64))
    def plus(one: int, other: int) -> int:
        return one + other

    @compiled(types.uint64(types.uint64))
    def after(number: int) -> int:
        return plus(number, 1)

    largest = (1 << 64) - 2  # left to its caller's types the sum would be a float
    assert after(largest) == largest + 1
    assert [str(one) for one in plus.nopython_signatures] == ["(uint64, uint64) -> uint64"]


def test_a_kernel_may_call_itself() -> None:
    @compiled(types.int64(types.int64))
    def sum_to(number: int) -> int:
        return 0 if number == 0 else number + sum_to(number - 1)

    assert sum_to(10) == 55


def test_threads_that_call_it_first_at_once_get_one_kernel() -> None:
    @compiled(types.int64(types.int64))
    def inner(number: int) -> int:
        return number + 1

    @compiled(types.int64(types.int64))
    def outer(number: int) -> int:
        return inner(number) * 2

    found: list[Any] = []
    calls = [threading.Thread(target=lambda kernel=kernel: found.append(kernel(1))) for kernel in [inner, outer] * 4]
    for call in calls:
        call.start()
    for call in calls:
        call.join(60)
    assert sorted(found) == [2] * 4 + [4] * 4
    assert len(inner.overloads) == len(outer.overloads) == 1


def test_a_kernel_that_another_thread_loads_meanwhile_takes_what_converts() -> None:
    """Numba asks Python for the type of an argument that it never saw, and other threads run then."""
    shape = (1, 1, 1, 1, 2)

    @compiled(types.int64(types.Array(types.uint16, 5, "C", readonly=True)))
    def last(values: Any) -> int:
        return int(values[0, 0, 0, 0, 1])

    typeof, calls = last.typeof_pyval, list[threading.Thread]()

    def slowly(value: Any) -> Any:
        if not calls:
            only_read = np.ones(shape, np.uint16)
            only_read.flags.writeable = False
            calls.append(threading.Thread(target=last, args=(only_read,)))
            calls[0].start()
            calls[0].join(60)
        return typeof(value)

    last.typeof_pyval = slowly
    assert last(np.full(shape, 7, np.uint16)) == 7
    assert len(calls) == len(last.overloads) == 1


def test_kernels_take_bounds_from_the_page_that_their_cache_is_named_by() -> None:
    """Another page may change while machine code that has its old number inside stays in the cache."""
    sources = kernel.kernel_sources()
    imported = {
        node.module
        for path in sources
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tidegate.limits")
    }
    assert imported == {"tidegate.limits.formats", "tidegate.limits.units"}


def test_the_cache_is_named_by_every_file_with_a_kernel_and_by_all_that_kernels_take_in() -> None:
    """Machine code made of an older file would else stay in the cache: numba looks at the caller's own file alone."""
    library = Path(tidegate.__file__).parent
    known = {str(path.relative_to(library)) for path in kernel.kernel_sources()}
    texts = {str(path.relative_to(library)): path.read_text() for path in library.rglob("*.py")}
    with_kernels = {name for name, text in texts.items() if "\n@compiled(" in text}
    taken_in = set()
    for name in with_kernels:
        for node in ast.walk(ast.parse(texts[name])):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tidegate"):
                for module in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names)):
                    taken_in.add(str(Path(*module.split(".")[1:])) + ".py")
    assert (with_kernels | (taken_in & set(texts))) - known == set()
