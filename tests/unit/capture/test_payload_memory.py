"""Memory of payloads is used again, and never while a view of it is held."""

from __future__ import annotations

import numpy as np

from tidegate.capture.payload_memory import PayloadMemory


def address(array: np.ndarray) -> int:
    return int(array.ctypes.data)


def test_memory_comes_back_with_the_last_view_of_it() -> None:
    memory = PayloadMemory(1 << 20, 2)
    first = memory.take(1000)
    place = address(first)
    first[:3] = (1, 2, 3)
    payload = memoryview(first.data)[:3].toreadonly()
    cut = first[1:3]
    del first
    assert address(memory.take(1000)) != place
    del payload
    other = memory.take(1000)
    assert address(other) != place, "a slice still shows it"
    assert cut.tolist() == [2, 3]
    del cut
    assert address(memory.take(1000)) == place


def test_what_is_too_large_or_too_many_is_not_kept() -> None:
    memory = PayloadMemory(4096, 2)
    assert len(memory.take(5000)) == 5000
    lent = [memory.take(4096) for _ in range(4)]
    places = {address(array) for array in lent}
    del lent
    assert len(memory._kept) == 2
    again = [memory.take(4096) for _ in range(2)]
    assert {address(array) for array in again} <= places
