"""One set of storage options for both readers of a lake, delta-rs and Spark.

In:  a lake's path (local, s3://, abfss://, gs://); its options from the pipeline file; its
     connection.
Out: its root and options with delta-rs's names; the same as Spark's (Hadoop's) settings. A local root is asked of its
     disk, and nothing else is.

delta-rs's names: docs of the crate object_store. Hadoop's names: hadoop-aws, hadoop-azure,
gcs-connector.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from tidegate.connections import Connection
from tidegate.errors import ConfigError
from tidegate.limits import DISK_ANSWER_SECONDS
from tidegate.patience import NoAnswer, Patience

_PATIENCE: Final = Patience(DISK_ANSWER_SECONDS)
_known: Final[dict[Path, str]] = {}
_SCHEMES: Final = {
    "s3": "s3",
    "s3a": "s3",
    "abfss": "azure",
    "abfs": "azure",
    "gs": "gcs",
    "file": "local",
    "": "local",
}

# Extra keys of Airflow's AWS connections -> their names in clients of object stores.
_AWS_NAMES: Final = {
    "region_name": "AWS_REGION",
    "endpoint_url": "AWS_ENDPOINT_URL",
    "aws_session_token": "AWS_SESSION_TOKEN",
}
_AWS_KINDS: Final = ("aws", "s3")

_S3_SPARK: Final = {
    "aws_access_key_id": "fs.s3a.access.key",
    "aws_secret_access_key": "fs.s3a.secret.key",
    "aws_session_token": "fs.s3a.session.token",
    "aws_endpoint_url": "fs.s3a.endpoint",
    "aws_endpoint": "fs.s3a.endpoint",
    "aws_region": "fs.s3a.endpoint.region",
}
_AZURE_TOKENS: Final = "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider"
_GCS_SPARK: Final = {
    "google_service_account": "google.cloud.auth.service.account.json.keyfile",
    "google_application_credentials": "google.cloud.auth.service.account.json.keyfile",
}


def store_of(path: str) -> str:
    """local, s3, azure or gcs. Raises ConfigError for another scheme."""
    scheme = path.partition("://")[0].lower() if "://" in path else ""
    if scheme not in _SCHEMES:
        raise ConfigError(
            f"lake.path has the scheme {scheme!r}",
            where=f"{scheme}://...",
            remedy="use a local path, s3://, abfss:// or gs://",
        )
    return _SCHEMES[scheme]


def _without_links(path: Path) -> str:
    """Absolute. If its mount hangs, links are followed as they were before, or else not: all pipeline files are read in
    one go, and no lake may hold up the others. Raises ConfigError where they go in a circle.
    """
    try:
        _known[path] = str(_PATIENCE.ask(str(path), path.resolve))
    except NoAnswer:
        return _known.get(path, os.path.abspath(path))  # noqa: PTH100 - Path.resolve asks the disk
    except (RuntimeError, ValueError, OSError) as error:
        raise ConfigError(
            f"is no path of a folder: {error}", where=repr(str(path)), remedy="give another one"
        ) from error
    return _known[path]


def lake_root(path: str, home: Path) -> str:
    """A lake.path in the form for delta-rs and pyarrow: an absolute local path, or a URL without a
    trailing slash.

    home: the project's root. A relative path begins there, not in the folder of a command. Raises
    ConfigError for another scheme; for a URL with a key in it, since URLs are shown, logged and
    written down; for a URL without a bucket, or with # or ?: its path would end there; and for a path
    meant for another place than a folder of these letters: ~/lake, s3:/bucket.
    """
    if store_of(path) == "local":
        place = path.removeprefix("file://")
        first = place.split("/", 1)[0]
        if not place.strip() or first.startswith(("~", "$")) or first.endswith(":"):
            raise ConfigError(  # without the rest, which may have a key in it
                f"{first!r} would be the name of a folder here" if first.strip() else "the path is blank",
                where=f"path {first}...",
                remedy=f"write an absolute path, or s3://bucket/prefix; ./{first} for a folder of that name",
            )
        return _without_links(home / place)
    scheme, _, rest = path.partition("://")
    path = f"{scheme.lower()}://{rest}"  # Hadoop tells capitals apart
    parts = urlsplit(path)
    if not parts.netloc:
        raise ConfigError(
            "names no bucket", where=f"{parts.scheme}://...", remedy=f"write it as {parts.scheme}://bucket/prefix"
        )
    before, at, _ = parts.netloc.rpartition("@")  # of abfss:// a container
    if parts.query or ":" in before or (at and not parts.scheme.startswith("abfs")):
        raise ConfigError(
            "a URL of a store may have no key, user or query in it",
            where=f"{parts.scheme}://...",
            remedy="put keys into the extra of the connection (conn_id beside the path), and leave them out of the URL",
        )
    if "#" in path or "?" in path:  # the path would end there, and all tables would lie in one folder
        raise ConfigError(
            "the URL of a store can't contain # or ?",
            where=f"{parts.scheme}://...",
            remedy="give the folder another name",
        )
    url = "s3://" + path.removeprefix("s3a://") if path.startswith("s3a://") else path
    return url.rstrip("/")


def spark_uri(uri: str) -> str:
    """A path or URL under lake_root for Spark: its S3 file system is s3a."""
    return "s3a://" + uri.removeprefix("s3://") if uri.startswith("s3://") else uri


def delta_options(options: Mapping[str, str], secrets: Mapping[str, str]) -> dict[str, str]:
    """The options for delta-rs: names in lower case. The connection's secrets replace the file's."""
    return {name.lower(): str(value) for name, value in {**options, **secrets}.items()}


def store_keys(connection: Connection) -> dict[str, str]:
    """The options in a lake's connection: its extra, and an AWS connection's login and password."""
    extra = {key: value for key, value in connection.extra.items() if value is not None}
    options = {_AWS_NAMES.get(key, key): _text(value) for key, value in extra.items()}
    if connection.kind in _AWS_KINDS and connection.login:
        options |= {"AWS_ACCESS_KEY_ID": connection.login, "AWS_SECRET_ACCESS_KEY": connection.password}
    return options


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def spark_options(root: str, options: Mapping[str, str]) -> dict[str, str]:
    """delta-rs's options as Spark's settings (`spark.hadoop.` in front). Names without a
    counterpart are left out.
    """
    store, settings = store_of(root), {}
    lowered = {name.lower(): str(value) for name, value in options.items()}
    if store == "s3":
        settings = {spark: lowered[name] for name, spark in _S3_SPARK.items() if name in lowered}
        if lowered.get("aws_allow_http", "").lower() in ("true", "1"):
            settings["fs.s3a.connection.ssl.enabled"] = "false"
        if (
            lowered.get("aws_virtual_hosted_style_request", "").lower() not in ("true", "1")
            and "fs.s3a.endpoint" in settings
        ):
            settings["fs.s3a.path.style.access"] = "true"
    elif store == "gcs":
        settings = {spark: lowered[name] for name, spark in _GCS_SPARK.items() if name in lowered}
        if settings:
            settings["google.cloud.auth.service.account.enable"] = "true"
    elif store == "azure":
        settings = _azure(root, lowered)
    return {f"spark.hadoop.{name}": value for name, value in settings.items()}


def _azure(root: str, options: Mapping[str, str]) -> dict[str, str]:
    host = urlsplit(root).hostname or ""
    account = options.get("azure_storage_account_name") or options.get("account_name") or host.split(".")[0]
    host = host if "." in host else f"{account}.dfs.core.windows.net"
    settings = {}
    key = options.get("azure_storage_account_key") or options.get("account_key")
    if key:
        settings[f"fs.azure.account.key.{host}"] = key
    token = options.get("azure_storage_sas_token") or options.get("sas_token")
    if token:
        settings[f"fs.azure.account.auth.type.{host}"] = "SAS"
        settings[f"fs.azure.sas.fixed.token.{host}"] = token
    client, secret, tenant = (options.get(f"azure_{name}") for name in ("client_id", "client_secret", "tenant_id"))
    if client and secret and tenant:
        settings |= {
            f"fs.azure.account.auth.type.{host}": "OAuth",
            f"fs.azure.account.oauth.provider.type.{host}": _AZURE_TOKENS,
            f"fs.azure.account.oauth2.client.id.{host}": client,
            f"fs.azure.account.oauth2.client.secret.{host}": secret,
            f"fs.azure.account.oauth2.client.endpoint.{host}": f"https://login.microsoftonline.com/{tenant}/oauth2/token",
        }
    return settings
