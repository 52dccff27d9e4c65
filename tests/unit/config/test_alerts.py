"""The section `alerts`: a notifier is a class with arguments, and no secret stands in it.

In:  pipeline files.
Out: what is taken, and what is refused.
"""

from __future__ import annotations

import pytest

from tidegate.config import Alert, Alerts, parse
from tidegate.errors import ConfigError

TEXT = """
pipeline: shop
lake: {path: lakes/shop}
sources: {db: {conn_id: shop_db, flavour: mariadb}}
tables: {include: ["shop.*"]}
"""
SLACK = "airflow.providers.slack.notifications.slack_webhook.SlackWebhookNotifier"


def alerts(text: str) -> Alerts:
    return parse(f"{TEXT}alerts: {text}\n", where="p").alerts


def test_a_notifier_has_a_class_arguments_and_a_name() -> None:
    part = alerts(
        f"{{notifiers: {{ops: {{notifier: {SLACK}, arguments: {{slack_webhook_conn_id: slack,"
        " text: '{{ alert.text | e }}', icon_url: 'https://example.com/i.png'}}},"
        " leave_out: [clock_skew], bounds: {silver_behind: 900}}"
    )
    assert part.notifiers["ops"].notifier == SLACK
    assert part.leave_out == (Alert.CLOCK_SKEW,)
    assert part.bounds == {Alert.SILVER_BEHIND: 900.0}
    assert not alerts("{}").notifiers


@pytest.mark.parametrize(
    "arguments",
    [
        "{token: abc}",
        "{smtp_password: abc}",
        "{webhook_url: 'https://hooks.example.com/T0/B0'}",
        "{endpoint: 'https://user:abc@example.com'}",
        "{custom_headers: {X-Auth-Token: abc}}",
        "{to: [{secret: abc}]}",
    ],
)
def test_a_secret_is_refused_and_not_repeated(arguments: str) -> None:
    with pytest.raises(ConfigError, match="a secret has no place in a pipeline file") as refused:
        alerts(f"{{notifiers: {{ops: {{notifier: {SLACK}, arguments: {arguments}}}}}}}")
    assert "abc" not in str(refused.value)
    assert "T0" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "{notifiers: {ops: {notifier: 'os; system'}}}",
        "{notifiers: {ops: {notifier: Bare}}}",
        f"{{notifiers: {{'a b': {{notifier: {SLACK}}}}}}}",
        "{leave_out: [nothing_such]}",
        "{bounds: {tables_held: 5}}",
        "{bounds: {silver_behind: 0}}",
    ],
)
def test_what_cant_work_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        alerts(text)
