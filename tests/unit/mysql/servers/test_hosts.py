"""Which host of several is read, and what is said when none goes on: the walk, without servers.

In:  hosts that open or don't, and go on or don't.
Out: the one that is chosen, which connections stay open, and the kind of the error.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.unit.mysql.facts.test_server_facts import facts
from tidegate.errors import ConfigError, PositionLost, SourceBehind, SourceRefused, SourceUnavailable, TidegateError
from tidegate.mysql.connecting.connection import ConnectionInfo, Endpoint
from tidegate.mysql.servers import hosts as of_hosts
from tidegate.mysql.servers.hosts import Hosts, captured_host, host_of
from tidegate.segments.segment import Server

A, B, C = (ConnectionInfo(name) for name in "abc")
ALL = ConnectionInfo("a", others=(Endpoint("b", 3306), Endpoint("c", 3306)))


@dataclass(eq=False)
class Connection:
    facts: Any
    closed: bool = False

    def close(self) -> None:
        self.closed = True


@dataclass
class World:
    """dead: what opening a host raises. lacks: what going on there raises."""

    dead: dict[str, TidegateError] = field(default_factory=dict)
    lacks: dict[str, TidegateError] = field(default_factory=dict)
    opened: dict[str, Connection] = field(default_factory=dict)

    def opening(self, host: ConnectionInfo) -> Connection:
        if host.host in self.dead:
            raise self.dead[host.host]
        found = self.opened[host.host] = Connection(facts(server_id=ord(host.host), server_uuid=""))
        return found

    def goes_on(self, host: ConnectionInfo, _: Connection) -> str:
        if host.host in self.lacks:
            raise self.lacks[host.host]
        return host.host

    def chosen(self, captured: str, at_hand: ConnectionInfo = A) -> str:
        hosts = Hosts(ALL, at_hand)
        info, one, found = hosts.first_that(hosts.first(self.opening), self.opening, (ord(captured), ""), self.goes_on)
        assert info.host == found
        assert {name for name, opened in self.opened.items() if not opened.closed} == {found}
        assert one is self.opened[found]
        return found


DOWN, LOST, BEHIND = SourceUnavailable("down"), PositionLost("lost"), SourceBehind("behind")


def test_the_host_that_was_captured_last_comes_before_the_order() -> None:
    assert World().chosen("a") == "a"
    assert World().chosen("c") == "c"
    assert World().chosen("?") == "a", "by order, when none is the one"
    assert World().chosen("?", at_hand=B) == "b", "but first the one at hand"
    world = World()
    world.chosen("a")
    assert list(world.opened) == ["a"], "nobody else is asked while it goes on"


@pytest.mark.parametrize("error", [DOWN, SourceRefused("no")])
def test_a_host_that_cant_be_opened_is_passed_over(error: TidegateError) -> None:
    assert World(dead={"a": error}).chosen("a") == "b"
    assert World(dead={"a": error, "b": error}).chosen("c") == "c"


@pytest.mark.parametrize("error", [DOWN, LOST, BEHIND, SourceRefused("no")])
def test_a_host_that_cant_go_on_is_passed_over(error: TidegateError) -> None:
    assert World(lacks={"a": error}).chosen("a") == "b"
    assert World(lacks={"c": error}).chosen("c") == "a"
    assert World(lacks={"a": LOST, "b": error}).chosen("b") == "c"


@pytest.mark.parametrize(
    ("dead", "lacks", "kind"),
    [
        ({"a": DOWN}, {"b": BEHIND, "c": LOST}, SourceBehind),
        ({"a": DOWN}, {"b": LOST, "c": LOST}, SourceUnavailable),
        ({"a": SourceRefused("no")}, {"b": LOST, "c": LOST}, PositionLost),
        ({name: SourceRefused("no") for name in "abc"}, {}, SourceRefused),
        ({name: ConfigError("no such file") for name in "abc"}, {}, ConfigError),
    ],
)
def test_when_none_goes_on_the_kind_that_leaves_hope_counts_and_each_host_is_named(
    dead: dict[str, TidegateError], lacks: dict[str, TidegateError], kind: type[TidegateError]
) -> None:
    world = World(dead, lacks)
    with pytest.raises(kind) as caught:
        world.chosen("a")
    assert type(caught.value) is kind
    assert all(f"{name}:3306: " in str(caught.value) for name in "abc")
    assert all(opened.closed for opened in world.opened.values())


def test_what_is_no_hosts_fault_ends_the_walk_and_leaves_nothing_open() -> None:
    world = World(lacks={"b": ConfigError("another flavour's file")})
    hosts = Hosts(ALL, A)
    with pytest.raises(ConfigError):
        hosts.first_that(hosts.first(world.opening), world.opening, (ord("b"), ""), world.goes_on)
    assert all(opened.closed for opened in world.opened.values())


def test_one_host_says_what_it_says_itself() -> None:
    hosts = Hosts(A, A)
    with pytest.raises(PositionLost, match=r"^lost$"):
        hosts.first_that(hosts.first(World().opening), World().opening, (0, ""), World(lacks={"a": LOST}).goes_on)


def test_who_must_meet_the_captured_server_gets_no_other_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def ids(host: ConnectionInfo) -> Server:
        if host.host == "a":
            raise DOWN
        return ord(host.host), "u"

    monkeypatch.setattr(of_hosts, "server_at", ids)
    assert captured_host(ALL, (ord("c"), "u")).host == "c"
    assert captured_host(ALL, None).host == "b", "before anything is captured, who answers"
    assert captured_host(A, (ord("c"), "u")) is A, "one host is as it is"
    assert host_of(ALL, (ord("a"), "u")).host == "b", "a diagnosis is made of whoever answers"
    for gone in ((ord("a"), "u"), (ord("b"), "of a clone")):
        with pytest.raises(
            SourceUnavailable, match=r"none of the source's hosts is server .* a:3306: down; b:3306: it is"
        ) as caught:
            captured_host(ALL, gone)
        assert type(caught.value) is SourceUnavailable
