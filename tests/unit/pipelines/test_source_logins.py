"""Which logins of sources apply's driver gets: those of sources that it may ask, and whole."""

from __future__ import annotations

from dataclasses import replace

from tidegate import config
from tidegate.connections import Connection
from tidegate.errors import ConfigError
from tidegate.source_logins import asked_sources, given, login

_TEXT = """
pipeline: p
lake: {path: /lake}
sources:
  maria: {conn_id: shop_maria, flavour: mariadb}
  other: {conn_id: crm_maria, flavour: mariadb}
  away: {conn_id: away, flavour: mariadb}
  my: {conn_id: shop_my, flavour: mysql}
tables: {include: ["shop.*"]}
"""
_MARIA = Connection(
    "shop_maria", "mysql", "db.example", 3307, "reader", "p'w\"d", {"ssl": {"ca": "/ca.pem"}, "hosts": "b:1"}
)


def _there(conn_id: str) -> Connection:
    if conn_id != "shop_maria":
        raise ConfigError(f"connection {conn_id} is not defined", where=conn_id, remedy="define it")
    return _MARIA


def _pipeline(text: str) -> config.Pipeline:
    return config.parse(text, where="p.yaml")


def test_only_mariadb_sources_are_asked() -> None:
    pipeline = _pipeline(_TEXT)
    assert asked_sources(pipeline) == {"maria": "shop_maria", "other": "crm_maria", "away": "away"}
    texts = given(pipeline, _there)
    assert texts.keys() == {"shop_maria"}, "a connection that isn't there stops no job"
    assert login("away", texts) is None
    assert replace(login("shop_maria", texts) or _MARIA, name="shop_maria") == _MARIA


def test_no_login_is_given_where_tables_are_to_wait() -> None:
    pipeline = _pipeline(_TEXT + "ddl: {unlogged_generated: hold}\n")
    assert (asked_sources(pipeline), given(pipeline, _there)) == ({}, {})
