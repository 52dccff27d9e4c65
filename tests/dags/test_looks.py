"""Looks of triggers don't wait for each other, whatever hangs."""

from __future__ import annotations

import asyncio
import threading

import pytest

pytestmark = pytest.mark.airflow


def test_looks_that_hang_leave_others_and_asyncios_own_threads_alone() -> None:
    from tidegate_airflow.looks import looked

    hangs = threading.Event()

    async def all_of_them() -> tuple[str, str]:
        hanging = [asyncio.ensure_future(looked(hangs.wait, 60)) for _ in range(40)]
        await asyncio.sleep(0)
        found = (
            await asyncio.wait_for(looked(str, 1), 20),
            await asyncio.wait_for(asyncio.to_thread(str, 2), 20),
        )
        hangs.set()
        await asyncio.gather(*hanging)
        return found

    assert asyncio.run(all_of_them()) == ("1", "2")
