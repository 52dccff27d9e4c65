"""The keys of masks that a job may ask for, by the connection's id.

In:  the submitter's values in the environment; else AIRFLOW_CONN_<ID>.
Out: MaskKey. It stays in the driver.
"""

from __future__ import annotations

import json
import os

from tidegate.config import Pipeline
from tidegate.connections import from_environment
from tidegate.errors import ConfigError
from tidegate.home import MASK_KEYS_ENV
from tidegate.masks.mask_keys import MaskKey, mask_key


def mask_keys(pipeline: Pipeline) -> dict[str, MaskKey]:
    """The keys that the pipeline file names. Raises ConfigError for a missing key, and for one that is too short."""
    names = {rule.key_conn_id for rule in pipeline.tables.masks if rule.key_conn_id is not None}
    return {conn_id: mask_key(conn_id, _password(conn_id)) for conn_id in sorted(names)}


def _password(conn_id: str) -> str:
    given: dict[str, str] = json.loads(os.environ.get(MASK_KEYS_ENV, "{}"))
    if conn_id in given:
        return given[conn_id]
    try:
        return from_environment(conn_id).password
    except ConfigError as error:
        raise ConfigError(
            f"the driver has no key of masks: {error}",
            where=f"connection {conn_id}",
            remedy="add the connection; a driver on YARN or Kubernetes needs it as a variable of its own",
        ) from error
