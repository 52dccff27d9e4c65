"""Tables whose rows change with other tables' rows, without row events: by foreign keys of the
engine.

In:  an Application's schema histories.
Out: children of a physical table, ancestors of one; the rules in force at a commit_ts. Nothing is
     read or written here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from spark_jobs.window.application import Application
from tidegate.cascades.rules import Rule, rules_of
from tidegate.cascades.values import Doubt
from tidegate.config import Cascades
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.schema.replay.history import SchemaHistory
from tidegate.table_names import Physical

Name = tuple[str, str]
RulesOf = Callable[[TableVersion, Mapping[Name, TableVersion | None]], list[Rule]]


@dataclass(slots=True)
class CascadeGraph:
    """Per source: parent -> children, child -> parents, of every version in memory. made_of: of
    schema_history.
    """

    children: dict[str, dict[Name, set[Name]]] = field(default_factory=dict)
    parents: dict[str, dict[Name, set[Name]]] = field(default_factory=dict)
    made_of: int = -1


def cascade_graph(app: Application) -> CascadeGraph:
    """The graph of the present histories. It is made again when they change."""
    graph = app.memory(CascadeGraph)
    if graph.made_of != app.histories.version or graph.made_of < 0:
        graph.children, graph.parents, graph.made_of = {}, {}, app.histories.version
        if app.pipeline.ddl.unlogged_cascades is Cascades.FOLLOW:
            for source, history in app.histories.items():
                for name in history.unusual:
                    _note(graph, source, name, history.versions(*name))
    return graph


def forget_cascades(app: Application) -> None:
    """A statement of this window may have made a foreign key."""
    app.memory(CascadeGraph).made_of = -1


def _note(graph: CascadeGraph, source: str, child: Name, versions: Iterable[TableVersion]) -> None:
    for parent in {key.parent for version in versions for key in version.foreign_keys if key.acts_unseen}:
        graph.children.setdefault(source, {}).setdefault(parent, set()).add(child)
        graph.parents.setdefault(source, {}).setdefault(child, set()).add(parent)


def descendants(app: Application, physical: Physical) -> Iterator[Physical]:
    """Kept tables whose rows may change with a table's, at once or by way of others."""
    source = physical.source
    links = cascade_graph(app).children.get(source)
    for database, table in _reached(links, physical.pair) if links else ():
        if app.names.keeps(source, database, table):
            yield Physical(source, database, table)


def ancestors(app: Application, physical: Physical) -> Iterator[Physical]:
    """Tables whose changes may change a table's rows."""
    source = physical.source
    links = cascade_graph(app).parents.get(source)
    for database, table in _reached(links, physical.pair) if links else ():
        yield Physical(source, database, table)


def _reached(links: dict[Name, set[Name]], first: Name) -> Collection[Name]:
    reached, waiting = set[Name](), list(links.get(first, ()))
    while waiting:
        if (name := waiting.pop()) not in reached:
            reached.add(name)
            waiting += links.get(name, ())
    return sorted(reached)


def rules_at(app: Application, source: str, child: Name, commit_ts: int, made_of: RulesOf = rules_of) -> list[Rule]:
    """A child's rules for transactions with this commit_ts. made_of: links_of for a table whose own rows aren't
    followed. Raises Doubt.
    """
    history = app.histories[source]
    version = history.version_at(*child, commit_ts)
    if version is None or version.status is VersionStatus.DROPPED:
        return []
    parents = {key.parent for key in version.foreign_keys if key.acts_unseen}
    for parent in sorted(parents):
        check_parent(app, source, parent)
        _check_known(history, parent, commit_ts)
    return made_of(version, {parent: history.version_at(*parent, commit_ts) for parent in parents})


def _check_known(history: SchemaHistory, parent: Name, commit_ts: int) -> None:
    """Raises Doubt if the commit_ts lies before the parent's versions in memory: other windows have
    passed those.
    """
    first = next(iter(history.versions(*parent)), None)
    if first is None or first.commit_ts <= commit_ts or (first.version, first.kind) == (1, "create"):
        return
    raise Doubt(f"what its parent {'.'.join(parent)} was like then is no longer known")


def check_parent(app: Application, source: str, parent: Name) -> None:
    """Raises Doubt where its changes aren't read."""
    if not app.names.keeps(source, *parent):
        raise Doubt(f"the pipeline file leaves its parent {'.'.join(parent)} out")
