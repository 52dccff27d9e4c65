"""Parts of Airflow that have stopped answering, said once when it has lasted, and once when it is over.

In:  now and then the names of the parts that are not healthy.
Out: lines for the person who looks at `tidegate up`.

A part that ends takes no other one with it: the page still answers, and nothing new is started.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tidegate.limits import UP_AILING_SECONDS


class Ailing:
    """log: the file to look into."""

    def __init__(self, log: str) -> None:
        self._log = log
        self._since: dict[str, float] = {}
        self._said: set[str] = set()

    def look(self, parts: Collection[str], now: float) -> Iterator[str]:
        """now: seconds of any clock that goes on."""
        for part in sorted(self._said.difference(parts)):
            yield f"Airflow's {part} answers again"
        self._said.intersection_update(parts)
        self._since = {part: self._since.get(part, now) for part in parts}
        for part, since in sorted(self._since.items()):
            if now - since >= UP_AILING_SECONDS and part not in self._said:
                self._said.add(part)
                yield (
                    f"Airflow's {part} hasn't answered for {now - since:.0f} s, and tasks may not start: if it doesn't"
                    f" come back, press Ctrl-C and run `tidegate up` again; it goes on where it was ({self._log})"
                )
