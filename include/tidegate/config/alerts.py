"""The section `alerts` of a pipeline file: the notifiers for trouble, when it begins and when it ends.

In:  the section, as pydantic gets it.
Out: an Alerts, frozen. Alert: the name of each; metrics/rules.py says when it is so.

A notifier is Airflow's: a class and its arguments. Secrets stand in the connection, named by its id.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import Field, field_validator

from tidegate.config.section import Section
from tidegate.config.store_options import is_secret

_CLASS: Final = r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)+$"
# A webhook's address is a secret of its own: whoever knows it may write there.
_ADDRESS: Final = re.compile(r"webhook_?(url|uri|token|endpoint)$")


class Alert(StrEnum):
    """Names of trouble."""

    LAKE_UNREADABLE = "lake_unreadable"
    NOT_STARTED = "not_started"
    STOPPED = "stopped"
    SILVER_BEHIND = "silver_behind"
    CAPTURE_BEHIND = "capture_behind"
    SOURCE_DOWN = "source_down"
    SOURCE_LEFT_BEHIND = "source_left_behind"
    TABLES_HELD = "tables_held"
    SNAPSHOT_FAILED = "snapshot_failed"
    VERIFICATION_DIFFERS = "verification_differs"
    VERIFICATION_OLD = "verification_old"
    PURGE_NEAR = "purge_near"
    CAPTURE_DOWN = "capture_down"
    APPLY_DOWN = "apply_down"
    CAPTURE_SILENT = "capture_silent"
    VALUE_LOG_FULL = "value_log_full"
    DISK_LOW = "disk_low"
    DISK_SILENT = "disk_silent"
    HOUR_OVERDUE = "hour_overdue"
    CLOCK_SKEW = "clock_skew"


class Notifier(Section):
    """One of Airflow's notifiers."""

    notifier: str = Field(
        pattern=_CLASS,
        description="Class of an Airflow notifier, as airflow.providers.slack.notifications.slack_webhook"
        ".SlackWebhookNotifier. tidegate_airflow.webhook_notifier.WebhookNotifier comes with tidegate",
    )
    arguments: dict[str, Any] = Field(
        default_factory=dict,
        description="Its arguments: an Airflow connection's id, and templates with {{ alert.subject }} and"
        " {{ alert.text }}. No secrets",
    )

    @field_validator("arguments")
    @classmethod
    def _no_secrets(cls, arguments: dict[str, Any]) -> dict[str, Any]:
        secrets = sorted({key for key, value in _leaves(arguments) if is_secret(key, value) or _ADDRESS.search(key)})
        if secrets:
            raise ValueError(
                f"a secret has no place in a pipeline file ({', '.join(secrets)}): name an Airflow connection"
            )
        return arguments


def _leaves(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """(the nearest key, the value as text) of everything in a value of YAML's."""
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from _leaves(part, str(name).lower())
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _leaves(part, key)
    else:
        yield key, str(value)


class Alerts(Section):
    """Each notifier has a DAG <name>__alerts_<notifier>. It sends beginnings and ends."""

    notifiers: dict[Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,31}$")], Notifier] = Field(
        default_factory=dict
    )
    leave_out: tuple[Alert, ...] = Field((), description="Alerts that nobody is told of (docs/alerts.md)")
    bounds: dict[Alert, Annotated[float, Field(gt=0)]] = Field(
        default_factory=dict,
        description="Other bounds than those of docs/alerts.md, in seconds, as {silver_behind: 900}; of disk_low the"
        " part of the disk, as {disk_low: 0.2}",
    )

    @field_validator("bounds")
    @classmethod
    def _have_bounds(cls, bounds: dict[Alert, float]) -> dict[Alert, float]:
        if without := sorted(bounds.keys() - BOUNDED):
            raise ValueError(f"{', '.join(without)} has no bound: known are {', '.join(sorted(BOUNDED))}")
        return bounds


# Those that compare a time, or a part, with a bound.
BOUNDED: Final = frozenset(
    {
        Alert.SILVER_BEHIND,
        Alert.CAPTURE_BEHIND,
        Alert.VERIFICATION_OLD,
        Alert.PURGE_NEAR,
        Alert.CAPTURE_SILENT,
        Alert.VALUE_LOG_FULL,
        Alert.DISK_LOW,
        Alert.HOUR_OVERDUE,
        Alert.CLOCK_SKEW,
    }
)
