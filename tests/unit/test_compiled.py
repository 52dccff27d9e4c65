"""Kernels are compiled at their first call, for the one signature that stands at them."""

from __future__ import annotations

import threading
from typing import Any

from numba import types

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
