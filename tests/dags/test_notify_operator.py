"""A message goes out by one of Airflow's notifiers, and what fails is tried again without sending twice.

In:  asset events; a real server of HTTP on this machine; Airflow's own notifier for mail, given no server.
Out: what was posted; the errors of what couldn't be.
"""

from __future__ import annotations

import json
import socket
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import BaseNotifier, Connection
from airflow.sdk.execution_time.timeout import timeout

from tests.support.webhook import Webhook
from tidegate.errors import ConfigError, Transient
from tidegate.limits import ALERT_NOTIFIER_SECONDS_MAX
from tidegate_airflow.notify_operator import NotifyOperator, changes_of
from tidegate_airflow.webhook_notifier import address, headers

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.filterwarnings("ignore:GitWildMatchPattern:DeprecationWarning"),
]
WEBHOOK = "tidegate_airflow.webhook_notifier.WebhookNotifier"
HELD = {
    "alert": "tables_held",
    "severity": "warning",
    "began": True,
    "count": 1,
    "names": ["shop.a"],
    "line": "Tables are held: shop.a (parked).",
}
NOON = datetime(2026, 11, 26, 12, tzinfo=UTC)


class Store(dict[str, Any]):
    """A task's own store."""

    def set(self, key: str, value: Any) -> None:
        self[key] = value


def context(*changes: dict[str, Any], store: Store | None = None) -> Any:
    events = [
        SimpleNamespace(timestamp=NOON + timedelta(seconds=number), extra={"payload": {"changes": [change]}})
        for number, change in enumerate(changes)
    ]
    return {
        "triggering_asset_events": {"asset": events[::-1]} if events else {},
        "task_state_store": Store() if store is None else store,
    }


def operator(notifier: str = WEBHOOK, **arguments: Any) -> NotifyOperator:
    return NotifyOperator(task_id="notify", pipeline="shop", notifier=notifier, arguments=arguments)


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> Any:
    def connect(hook: Webhook) -> None:
        value = {"conn_type": "http", "host": "127.0.0.1", "port": hook.port, "schema": "in", "password": "t0ken"}
        monkeypatch.setenv("AIRFLOW_CONN_HOOK", json.dumps(value))

    return connect


def test_all_that_waited_is_one_post_with_the_connections_token(connected: Any) -> None:
    with Webhook() as hook:
        connected(hook)
        over = HELD | {"began": False, "line": "Over: Tables are held: shop.a."}
        operator(http_conn_id="hook").execute(context(HELD, over))
    (body,) = hook.bodies
    assert body["text"] == "shop: Tables are held: shop.a (parked).\nshop: Over: Tables are held: shop.a.\n"
    assert (body["subject"], body["severity"]) == ("shop: Tables are held, and 1 more", "warning")
    assert [change["began"] for change in body["changes"]] == [True, False]
    assert (hook.headers[0]["Authorization"], hook.headers[0]["path"]) == ("Bearer t0ken", "/in")


def test_a_notifiers_templates_see_the_message(connected: Any) -> None:
    with Webhook() as hook:
        connected(hook)
        operator(http_conn_id="hook", body='{"say": {{ alert.text | tojson }}}').execute(context(HELD))
    assert hook.bodies == [{"say": "shop: Tables are held: shop.a (parked).\n"}]


def test_what_fails_is_tried_again_and_what_was_sent_isnt_sent_again(connected: Any) -> None:
    store = Store()
    with Webhook() as hook:
        connected(hook)
        hook.status = 503
        with pytest.raises(
            Transient, match=r"the message isn't sent: HTTPError: HTTP Error 503.*tried again"
        ) as failed:
            operator(http_conn_id="hook").execute(context(HELD, store=store))
        assert failed.value.__suppress_context__, "an exception's own frames may hold an address"
        hook.status = 200
        for _ in range(2):
            operator(http_conn_id="hook").execute(context(HELD, store=store))
    assert (len(hook.refused), len(hook.bodies)) == (1, 1)


@pytest.mark.parametrize("status", [301, 302, 303, 307])
def test_a_redirect_is_an_error_since_it_would_lose_the_message(connected: Any, status: int) -> None:
    """Browsers and libraries follow one by GET, without a body. The token would go along, wherever it leads."""
    with Webhook() as hook:
        connected(hook)
        hook.status, hook.location = status, f"http://127.0.0.1:{hook.port}/elsewhere"
        with pytest.raises(Transient, match=f"HTTP Error {status}"):
            operator(http_conn_id="hook").execute(context(HELD))
    assert hook.gets == 0


class Hanging(BaseNotifier):
    """A service that takes the message and never answers, by a client that waits for ever."""

    def notify(self, context: Any) -> None:
        """Ends by Airflow's own timeout alone."""
        del context
        with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
            client.recv(1)


def test_a_notifier_that_hangs_is_ended_and_tried_again() -> None:
    task = operator(f"{__name__}.Hanging")
    assert task.execution_timeout == timedelta(seconds=ALERT_NOTIFIER_SECONDS_MAX)
    with pytest.raises(Transient, match=r"the message isn't sent: AirflowTaskTimeout"), timeout(1):  # as tasks are run
        task.execute(context(HELD))


@pytest.mark.parametrize(
    ("notifier", "arguments"),
    [
        ("no.such.provider.Notifier", {}),
        ("airflow.providers.smtp.notifications.smtp.NoNotifier", {}),
        ("airflow.providers.smtp.notifications.smtp.SmtpNotifier", {"to": "a@example.com", "nothing_such": 1}),
        ("airflow.providers.smtp.notifications.smtp.SmtpNotifier", {"to": "a@example.com", "smtp_conn_id": "no_such"}),
        ("pathlib.PurePath", {}),
        (WEBHOOK, {"http_conn_id": "no_such"}),
    ],
)
def test_whatever_a_notifier_lacks_is_an_error_that_is_tried_again(notifier: str, arguments: dict[str, Any]) -> None:
    """It is mended by a person, or by an installation; until then the message waits."""
    with pytest.raises(Transient, match="the message isn't sent"):
        operator(notifier, **arguments).execute(context(HELD))


def test_a_run_by_hand_sends_a_message_to_try_the_notifier(connected: Any) -> None:
    with Webhook() as hook:
        connected(hook)
        operator(http_conn_id="hook").execute(context())
    assert hook.bodies[0]["subject"] == "shop: a message to try WebhookNotifier"
    assert hook.bodies[0]["changes"] == []


def test_an_event_that_a_person_makes_says_nothing() -> None:
    by_hand = [SimpleNamespace(timestamp=NOON, extra=extra) for extra in (None, {}, {"payload": 1}, {"payload": {}})]
    assert changes_of(by_hand) == []


def test_the_webhook_is_one_of_airflows_notifiers() -> None:
    from tidegate_airflow.webhook_notifier import WebhookNotifier

    assert issubclass(WebhookNotifier, BaseNotifier)


@pytest.mark.parametrize(
    ("parts", "url"),
    [
        ({"conn_type": "http", "host": "a", "port": 8080, "schema": "in/x"}, "http://a:8080/in/x"),
        ({"conn_type": "http", "host": "a", "schema": "https"}, "https://a/"),
        ({"conn_type": "https", "host": "a", "extra": '{"endpoint": "/in"}'}, "https://a/in"),
        ({"conn_type": "http", "host": "https://a/in?x=1"}, "https://a/in?x=1"),
        ({"conn_type": "http", "host": "::1", "port": 8080, "schema": "in"}, "http://[::1]:8080/in"),
    ],
)
def test_an_address_is_written_in_airflows_ways(parts: dict[str, Any], url: str) -> None:
    assert address(Connection(conn_id="hook", **parts)) == url


def test_a_connection_without_a_host_is_refused_and_others_give_their_secrets_as_headers() -> None:
    with pytest.raises(ConfigError, match="no address of HTTP"):
        address(Connection(conn_id="hook", conn_type="http"))
    with pytest.raises(ConfigError, match="no address of HTTP"):
        address(Connection(conn_id="hook", conn_type="http", host="file:///etc/passwd"))
    basic = Connection(
        conn_id="h", conn_type="http", host="a", login="u", password="p", extra='{"headers": {"X": "1"}}'
    )
    assert headers(basic) == {"Content-Type": "application/json", "Authorization": "Basic dTpw", "X": "1"}


def test_a_pasted_line_end_is_no_part_of_a_token_and_no_error_quotes_a_secret() -> None:
    """The standard library's own errors do, in a form that no mask of a log knows."""
    pasted = Connection(conn_id="h", conn_type="http", host="a", password="t0ken\n")
    assert headers(pasted)["Authorization"] == "Bearer t0ken"
    for secret in ("s3c\nret", "s3cr€t"):
        with pytest.raises(ConfigError, match="the header Authorization has a character") as refused:
            headers(Connection(conn_id="h", conn_type="http", host="a", password=secret))
        assert "s3c" not in str(refused.value)
    with pytest.raises(ConfigError, match="a space or a line break") as refused:
        address(Connection(conn_id="h", conn_type="http", host="https://a/s3c ret"))
    assert "s3c" not in str(refused.value)
