"""Airflow connections as what the library takes.

In:  connection ids of a pipeline file; secrets come from Airflow's secrets backends, at run time only.
Out: a ConnectionInfo for a source, storage options for a lake. Every value that comes out of a connection is
     registered with Airflow's log masking.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.log import mask_secret

from tidegate.errors import ConfigError

if TYPE_CHECKING:
    from airflow.sdk import Connection

    from tidegate.mysql.connection import ConnectionInfo

# Extra keys of Airflow's AWS connections under the names that object stores' clients use.
_AWS_NAMES = {"region_name": "AWS_REGION", "endpoint_url": "AWS_ENDPOINT_URL", "aws_session_token": "AWS_SESSION_TOKEN"}
# Values that are settings, not secrets: masking "true" or a region would garble logs.
_PLAIN_KEYS = ("region", "endpoint", "allow_http", "conditional", "url", "account_name", "bucket")


def connection_info(conn_id: str) -> ConnectionInfo:
    """The source behind an Airflow connection. Raises ConfigError when there is none or it can't be used."""
    return _info(conn_id, _get(conn_id))


async def aconnection_info(conn_id: str) -> ConnectionInfo:
    """The same, inside the triggerer's event loop."""
    return _info(conn_id, await _aget(conn_id))


def storage_options(conn_id: str | None, options: dict[str, str]) -> dict[str, str]:
    """A lake's own options, and those of its connection over them, as delta-rs names them."""
    return _merged(options, _store(_get(conn_id)) if conn_id else {})


async def astorage_options(conn_id: str | None, options: dict[str, str]) -> dict[str, str]:
    """The same, inside the triggerer's event loop."""
    return _merged(options, _store(await _aget(conn_id)) if conn_id else {})


def _merged(options: dict[str, str], secrets: dict[str, str]) -> dict[str, str]:
    from tidegate.lake.storage import delta_options

    return delta_options(options, secrets)


def _get(conn_id: str) -> Connection:
    try:
        return BaseHook.get_connection(conn_id)
    except AirflowNotFoundException as error:
        raise _unknown(conn_id) from error


async def _aget(conn_id: str) -> Connection:
    try:
        return await BaseHook.aget_connection(conn_id)
    except AirflowNotFoundException as error:
        raise _unknown(conn_id) from error


def _unknown(conn_id: str) -> ConfigError:
    return ConfigError(
        f"connection {conn_id!r} is not defined",
        where="Airflow",
        remedy=f"add it under Admin > Connections, or set AIRFLOW_CONN_{conn_id.upper()}",
    )


def _info(conn_id: str, connection: Connection) -> ConnectionInfo:
    from tidegate.mysql.connection import ConnectionInfo  # imports PyMySQL

    return ConnectionInfo.from_parts(
        f"Airflow connection {conn_id}",
        host=connection.host or "",
        port=connection.port,
        user=connection.login or "",
        password=connection.password or "",
        extra=connection.extra_dejson,
    )


def _store(connection: Connection) -> dict[str, str]:
    extra: dict[str, Any] = connection.extra_dejson
    found = {_AWS_NAMES.get(key, key): _text(value) for key, value in extra.items() if value is not None}
    if connection.conn_type in ("aws", "s3") and connection.login:
        found |= {"AWS_ACCESS_KEY_ID": connection.login, "AWS_SECRET_ACCESS_KEY": connection.password or ""}
    for key, value in found.items():
        if value and not any(plain in key.lower() for plain in _PLAIN_KEYS):
            mask_secret(value, key)
    return found


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
