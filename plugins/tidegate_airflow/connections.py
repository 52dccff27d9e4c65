"""Airflow's connections as the library takes them.

In:  connection ids of a pipeline file; secrets come from Airflow's secrets backends, at run time only.
Out: Connections. The secrets of a store's connection are registered with Airflow's log masking.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.log import mask_secret

from tidegate.connections import Connection, variable
from tidegate.errors import ConfigError
from tidegate.lake.storage.storage_options import delta_options, store_keys

if TYPE_CHECKING:
    from tidegate.mysql.connecting.connection import ConnectionInfo

PLACE: Final = "Airflow"  # the place of an action in control/actions
# Values that are settings, not secrets: masking "true" or a region would garble logs.
_PLAIN_KEYS = ("region", "endpoint", "allow_http", "conditional", "url", "account_name", "bucket")


def source_connection(conn_id: str) -> Connection:
    """A source's connection. Raises ConfigError when there is none."""
    try:
        return _taken(conn_id, BaseHook.get_connection(conn_id))
    except AirflowNotFoundException as error:
        raise _unknown(conn_id) from error


def lake_connection(conn_id: str) -> Connection:
    """A lake's connection, its keys masked in logs. Raises ConfigError when there is none."""
    return _masked(source_connection(conn_id))


async def asource_connection(conn_id: str) -> Connection:
    """source_connection inside the triggerer's event loop."""
    try:
        return _taken(conn_id, await BaseHook.aget_connection(conn_id))
    except AirflowNotFoundException as error:
        raise _unknown(conn_id) from error


async def alake_connection(conn_id: str) -> Connection:
    """lake_connection inside the triggerer's event loop."""
    return _masked(await asource_connection(conn_id))


async def astorage_options(conn_id: str | None, options: dict[str, str]) -> dict[str, str]:
    """A lake's own options and those of its connection over them, inside the triggerer's event loop."""
    keys = store_keys(await alake_connection(conn_id)) if conn_id else {}
    return delta_options(options, keys)


def connection_info(conn_id: str) -> ConnectionInfo:
    """How to reach the source behind a connection. Raises ConfigError when there is none or it can't be used."""
    from tidegate.mysql.connecting.connection import ConnectionInfo  # imports PyMySQL

    return ConnectionInfo.of(source_connection(conn_id))


def _unknown(conn_id: str) -> ConfigError:
    return ConfigError(
        f"connection {conn_id!r} is not defined",
        where="Airflow",
        remedy=f"add it under Admin > Connections, or set {variable(conn_id)}",
    )


def _taken(conn_id: str, airflow_connection: Any) -> Connection:
    return Connection(
        f"Airflow connection {conn_id}",
        airflow_connection.conn_type or "",
        airflow_connection.host or "",
        airflow_connection.port,
        airflow_connection.login or "",
        airflow_connection.password or "",
        airflow_connection.extra_dejson,
    )


def _masked(connection: Connection) -> Connection:
    for key, value in store_keys(connection).items():
        if value and not any(plain in key.lower() for plain in _PLAIN_KEYS):
            mask_secret(value, key)
    return connection
