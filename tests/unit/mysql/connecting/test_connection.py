"""An Airflow connection, as URI or JSON, becomes a ConnectionInfo; its password is never shown."""

from __future__ import annotations

import json
import traceback
from typing import Any

import pytest

from tidegate.errors import ConfigError
from tidegate.mysql.connecting.connection import ConnectionInfo, TlsMode
from tidegate.mysql.sql_text.sql import quote_name
from tidegate.mysql.stream.dump_stream import encode_gtid_set
from tidegate.position import MysqlGtidSet


def test_uri_and_json_give_the_same_connection() -> None:
    uri = "mysql://u%40x:p%3Aw@db.example:3307/shop?ssl_ca=/ca.pem&ssl_mode=verify_ca"
    text = json.dumps(
        {
            "host": "db.example",
            "port": 3307,
            "login": "u@x",
            "password": "p:w",
            "extra": {"ssl_ca": "/ca.pem", "ssl_mode": "verify_ca"},
        }
    )
    found = [ConnectionInfo.from_env("my_db", {"AIRFLOW_CONN_MY_DB": value}) for value in (uri, text)]
    assert found[0] == found[1]
    assert (found[0].user, found[0].password, found[0].port, found[0].tls) == ("u@x", "p:w", 3307, TlsMode.VERIFY_CA)


def test_the_password_is_not_in_the_repr() -> None:
    assert "hidden" not in repr(ConnectionInfo("h", password="hidden", key="hidden"))


def test_a_certificate_without_a_mode_is_verified() -> None:
    assert ConnectionInfo.from_airflow_text("x", "mysql://h?ssl_ca=/c").tls is TlsMode.VERIFY_IDENTITY


@pytest.mark.parametrize("text", ["", "{not json", "mysql://:x@/", "mysql://h?ssl_mode=maybe", "mysql://h:port"])
def test_a_connection_that_makes_no_sense_names_its_variable(text: str) -> None:
    with pytest.raises(ConfigError, match="AIRFLOW_CONN_X"):
        ConnectionInfo.from_env("x", {"AIRFLOW_CONN_X": text})


@pytest.mark.parametrize(
    "text",
    [
        "mysql://tide:s3cret/hunter@db/",
        "mysql://tide:s3cret#hunter@db:1/",
        "mysql://tide:1234#s3cret@db:1/",
        "mysql://tide:1234/s3cret@db/",
        "mysql://tide:1234?s3cret@db/",
        "mysql://tide:s3cret@db/?__extra__={s3cret",
        '{"host": "db", "password": "s3cret" "x"}',
    ],
)
def test_a_password_that_breaks_the_connection_is_in_no_traceback(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ConnectionInfo.from_airflow_text("AIRFLOW_CONN_X", text)
    shown = "".join(traceback.format_exception(caught.value))
    assert "s3cret" not in shown
    assert "1234" not in shown.replace(text, "")


@pytest.mark.parametrize(
    "extra",
    [
        *({"sslmode": "required"}, {"ssl": "true"}, {"SSL_MODE": "required"}, {"ssl_verify_cert": True}, {"tls": True}),
        *({"ssl": {"ca": "/ca.pem", "check_hostname": True}}, {"ssl_ca": 5}, {"ssl": ["/ca.pem"]}),
    ],
    ids=str,
)
def test_a_tls_setting_that_isnt_known_is_refused(extra: dict[str, Any]) -> None:
    """It was passed over, and the password went to any server, encrypted or not."""
    with pytest.raises(ConfigError, match=r"AIRFLOW_CONN_X: the TLS setting .* of the extra isn't understood; known"):
        ConnectionInfo.from_airflow_text("AIRFLOW_CONN_X", json.dumps({"host": "h", "extra": extra}))


def test_empty_and_other_settings_of_the_extra_are_left_alone() -> None:
    extra = {"ssl_mode": "", "ssl_ca": None, "ssl": {}, "charset": "utf8mb4", "disable_ssl": True}
    assert ConnectionInfo.from_airflow_text("x", json.dumps({"host": "h", "extra": extra})).tls is TlsMode.PREFERRED
    nested = {"ssl": {"ca": "/ca.pem", "mode": "verify_ca"}}
    info = ConnectionInfo.from_airflow_text("x", json.dumps({"host": "h", "extra": nested}))
    assert (info.ca, info.tls) == ("/ca.pem", TlsMode.VERIFY_CA)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"password": 123456}, "password of the connection is no text; put it in quotes"),
        ({"host": ["h"]}, "host of the connection is no text"),
        ({"port": -1}, "-1 is no port"),
        ({"port": 70000}, "70000 is no port"),
    ],
)
def test_a_field_of_another_type_is_named_without_its_value(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as refused:
        ConnectionInfo.from_airflow_text("AIRFLOW_CONN_X", json.dumps({"host": "h"} | fields))
    assert str(refused.value).startswith(f"AIRFLOW_CONN_X: {told}")
    assert "123456" not in str(refused.value)


def test_names_are_quoted_with_backticks_doubled() -> None:
    assert quote_name("a`b", "c") == "`a``b`.`c`"


def test_gtid_sets_are_encoded_as_the_server_reads_them() -> None:
    uuid = "00000000-0000-0000-0000-0000000000ff"
    data = encode_gtid_set(MysqlGtidSet.parse(f"{uuid}:1-5:8"))
    words = [1, 2, 1, 6, 8, 9]
    assert data == b"".join(
        [words[0].to_bytes(8, "little"), bytes(15), b"\xff", *(word.to_bytes(8, "little") for word in words[1:])]
    )


def _hosts(host: str, hosts: object, port: int | None = None) -> list[str]:
    text = json.dumps({"host": host, "port": port, "extra": {"hosts": hosts}})
    return [str(one.endpoint) for one in ConnectionInfo.from_airflow_text("x", text).each]


def test_further_hosts_come_behind_the_connections_own_each_once() -> None:
    assert _hosts("a", ["b:3307", "a:3306", "c"]) == ["a:3306", "b:3307", "c:3306"]
    assert _hosts("", ["b", "a"], 3309) == ["b:3309", "a:3309"]
    assert _hosts("", " b , [2001:db8::3]:3307,2001:db8::4 ") == ["b:3306", "[2001:db8::3]:3307", "[2001:db8::4]:3306"]
    uri = ConnectionInfo.from_airflow_text("x", "mysql://[2001:db8::1]:3307/?hosts=b:1,c")
    assert [str(one.endpoint) for one in uri.each] == ["[2001:db8::1]:3307", "b:1", "c:3307"]
    assert uri.where.endswith("@[2001:db8::1]:3307")


@pytest.mark.parametrize(
    ("hosts", "said"),
    [
        (["b", "b:3306"], "names b:3306 twice"),
        (["b:port"], "can't be read"),
        (["b:"], "can't be read"),
        (["[::1"], "can't be read"),
        (["b:70000"], "can't be read"),
        ([""], "can't be read"),
        ([3306], "isn't a list of hosts"),
        ({"a": 1}, "isn't a list of hosts"),
    ],
)
def test_hosts_that_cant_be_meant_are_refused(hosts: object, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        _hosts("a", hosts)


@pytest.mark.parametrize("host", ["root:secret@b", "mysql://root:secret@b:3306", "root:secret@b:3306"])
def test_a_password_in_hosts_is_in_no_message(host: str) -> None:
    with pytest.raises(ConfigError, match="'a URI' of the extra's hosts can't be read") as caught:
        _hosts("a", [host])
    assert "secret" not in str(caught.value)
