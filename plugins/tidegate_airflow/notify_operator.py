"""Send the beginnings and ends of alerts by one of Airflow's notifiers.

In:  the asset events of the run (alerts_trigger.py); a notifier's class and arguments from the pipeline file.
Out: one message for all of them. A run by hand sends a message to try the notifier.

If a notifier fails, or doesn't end in time, it is tried again for a week, at least once a minute. Further events wait
in Airflow for the next run, and come as one message. Apply, capture and other notifiers don't wait for it: each has a
DAG of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from airflow.sdk import BaseNotifier, BaseOperator
from airflow.sdk.exceptions import AirflowTaskTimeout

from tidegate.errors import Transient
from tidegate.limits import ALERT_NOTIFIER_SECONDS_MAX, MESSAGE_CHARACTERS_MAX

if TYPE_CHECKING:
    from airflow.sdk import Context

# Key in the task's own store: the message was sent. A later try reads it.
_SENT: Final = "sent"


class NotTold(Transient):
    """The notifier failed; the next try sends the same message."""


class NotifyOperator(BaseOperator):
    """notifier: the class; arguments: its own, whose templates see `alert`."""

    template_fields = ()  # the notifier has its own

    def __init__(self, *, pipeline: str, notifier: str, arguments: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(execution_timeout=timedelta(seconds=ALERT_NOTIFIER_SECONDS_MAX), **kwargs)
        self.pipeline = pipeline
        self.notifier = notifier
        self.arguments = arguments

    def execute(self, context: Context) -> None:
        """Raises NotTold if the notifier raises anything, takes too long, or can't be imported."""
        store = context["task_state_store"]
        if store.get(_SENT):
            self.log.info("an earlier try has sent it")
            return
        alert = self._message(context)
        self.log.info("%s", alert["text"])
        try:
            module, _, name = self.notifier.rpartition(".")
            notifier = getattr(import_module(module), name)(**self.arguments)
            if not isinstance(notifier, BaseNotifier):
                raise TypeError(f"{self.notifier} is no notifier of Airflow's")  # noqa: TRY301 - told like the others
            # By notify(), and not by calling the object: older notifiers of Airflow only log a
            # failure there.
            seen: Any = {**context, "alert": alert}
            notifier._update_context(seen)  # noqa: SLF001 - as its __call__ does
            notifier.render_template_fields(seen)
            notifier.notify(seen)
        except (Exception, AirflowTaskTimeout) as error:  # noqa: BLE001 - of whatever a provider or a service says
            said = " ".join(f"{type(error).__name__}: {error}".split())[:MESSAGE_CHARACTERS_MAX]
            raise NotTold(
                f"the message isn't sent: {said}",
                where=f"{self.pipeline}: {self.notifier}",
                remedy="it is tried again by itself; correct the notifier's arguments, its connection or its provider",
            ) from None
        store.set(_SENT, True)

    def _message(self, context: Context) -> dict[str, Any]:
        from tidegate.metrics.notices import message

        changes = changes_of([event for of in (context.get("triggering_asset_events") or {}).values() for event in of])
        alert = message(self.pipeline, changes)
        if not changes:
            alert |= {
                "subject": f"{self.pipeline}: a message to try {self.notifier.rpartition('.')[2]}",
                "text": f"{self.pipeline}: somebody started {self.dag_id} by hand. Nothing began or ended.\n",
            }
        return alert


def changes_of(events: Sequence[Any]) -> list[dict[str, Any]]:
    """The changes in asset events, the oldest first; a person's own events have none."""
    changes: list[dict[str, Any]] = []
    for event in sorted(events, key=lambda event: event.timestamp):
        payload = (event.extra or {}).get("payload")
        if isinstance(payload, dict):
            changes += payload.get("changes", [])
    return changes
