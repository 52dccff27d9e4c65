"""Parts of Airflow that don't answer: one line when that has lasted, and one when it is over.

In:  now and then the names of the parts that are not healthy.
Out: lines for the person who looks at `tidegate up`.

When one part ends, the others go on: the page still answers, but nothing new is started.
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
        if back := sorted(self._said.difference(parts)):
            yield f"Airflow's {', '.join(back)} {'answers' if len(back) == 1 else 'answer'} again"
        self._said.intersection_update(parts)
        self._since = {part: self._since.get(part, now) for part in parts}
        silent = [part for part, since in self._since.items() if now - since >= UP_AILING_SECONDS]
        if news := sorted(set(silent) - self._said):
            self._said.update(news)
            seconds = now - min(map(self._since.__getitem__, news))
            hasnt, it = ("hasn't", "it") if len(news) == 1 else ("haven't", "they")
            yield (
                f"Airflow's {', '.join(news)} {hasnt} answered for {seconds:.0f} s, and tasks may not start. A busy"
                f" machine may need minutes. If {it} won't come back, press Ctrl-C and run `tidegate up` again; it goes"
                f" on where it was ({self._log})"
            )
