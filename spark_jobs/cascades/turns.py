"""The order of writing for tables with unlogged foreign keys between them: the lower table goes before its parent.

In:  an Application, a window's tables with their changes, who writes some of them side by side.
Out: the outcome of each; who isn't written, since one that was to go before it catches up on its own.

Take a table m with rows that a foreign key changes unseen, and a table g below m. The rows that m had before the
window show which rows of g a foreign key took along. Once m is written, nothing has those rows any more. Therefore g
is written first: a window that ends in between, by a kill or a failed commit, finds all it needs when it is tried
again. A table whose own rows change by the log alone needs no such order, because the log can be read again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from spark_jobs.positional.writer import Outcome
from spark_jobs.window.application import Application
from spark_jobs.window.made import GivenBack, TableToWrite
from spark_jobs.window.shape.cascading import cascade_graph, descendants
from tidegate.errors import Terminal

First = Mapping[str, set[str]]


def write_in_turns(
    app: Application, works: Sequence[TableToWrite], write: Callable[[Sequence[TableToWrite]], dict[str, Outcome]]
) -> tuple[dict[str, Outcome], dict[str, str]]:
    """The outcome of each written table; and for each table that isn't written, the one that it catches up with. Tables
    that wait for the window's next try are in neither.

    A table that is held lets those above it go on, as always: one table's trouble is its own.
    """
    first, outcomes = written_first(app, works), dict[str, Outcome]()
    along, left = dict[str, str](), set[str]()
    for turn in in_turns(works, first):
        ready = []
        for work in turn:
            below = sorted(first.get(work.name, ()))
            if any(name in left or _fails(outcomes.get(name)) for name in below):
                left.add(work.name)
            elif back := [name for name in below if name in along or isinstance(outcomes.get(name), GivenBack)]:
                along[work.name] = back[0]
            else:
                ready.append(work)
        outcomes |= write(ready)
    return outcomes, along


def _fails(outcome: Outcome | None) -> bool:
    """Whether the window is tried again for it."""
    return isinstance(outcome, BaseException) and not isinstance(outcome, Terminal | GivenBack)


def written_first(app: Application, works: Sequence[TableToWrite]) -> First:
    """Tables that are written before a table, by its name. A group that is written as one waits as one."""
    parents = cascade_graph(app).parents
    if not parents:
        return {}
    by_name = {work.name: work for work in works}
    first = defaultdict[str, set[str]](set)
    for name, work in by_name.items():
        for physical in work.entry.physical:
            below = descendants(app, physical) if physical.pair in parents.get(physical.source, ()) else ()
            for child in below:
                first[name].add(app.names.logical_name(*child.pair))
        first[name] &= by_name.keys() - {name}
    for work in works:
        if work.plan.is_linked:
            group = {work.name, *work.plan.links}
            first |= dict.fromkeys(group, set[str]().union(*map(first.__getitem__, group)) - group)
    return first


def in_turns(works: Sequence[TableToWrite], first: First) -> Iterator[list[TableToWrite]]:
    """The tables in turns. Tables that depend on one another in a circle have no order: they come together, in the last
    turn.
    """
    waiting, done = {work.name: work for work in works}, set[str]()
    while waiting:
        turn = [name for name in waiting if first.get(name, set()) <= done] or list(waiting)
        yield list(map(waiting.pop, turn))
        done.update(turn)
