"""Masks of values: what each kind gives, and what never gets out.

In:  values of each type, rules.
Out: compared with HMAC-SHA256 by the standard library, and with properties that hold of every text.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import hmac
import json
import pickle
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate import config
from tidegate.config import MaskRule
from tidegate.connections import from_environment
from tidegate.errors import ConfigError
from tidegate.masks.mask_keys import MaskKey, mask_key, mask_passwords
from tidegate.masks.masking import Mask

SECRET = b"sixteen bytes or more"
KEY = MaskKey(SECRET)


def mask(how: str, **more: Any) -> Mask:
    needs = how in ("hmac", "mail", "phone")
    rule = MaskRule(match="a.t", columns=("c",), how=how, key_conn_id="k" if needs else None, **more)
    return Mask(rule, KEY if needs else None)


def coded(text: str) -> str:
    return hmac.new(SECRET, text.encode(), hashlib.sha256).hexdigest()


def test_each_kind_masks_texts_and_numbers_and_leaves_null_as_it_is() -> None:
    texts = pa.array(["anna@example.com", None, "nobody", "anna@example.com"])
    assert mask("hmac").column(texts).to_pylist() == [coded(t) if t else None for t in texts.to_pylist()]
    assert mask("null").column(texts).to_pylist() == [None] * 4
    assert mask("constant", value="-").column(texts).to_pylist() == ["-", None, "-", "-"]
    assert mask("partial", first=1, last=2).column(texts).to_pylist()[2] == "n***dy"
    mails = mask("mail").column(texts).to_pylist()
    assert mails == [f"{coded('anna@example.com')[:24]}@example.com", None, coded("nobody")[:24], mails[0]]
    numbers = pa.array([4711, None, -1], pa.int32())
    assert mask("hmac").column(numbers).to_pylist() == [coded("4711"), None, coded("-1")], "as the text of the number"
    assert mask("hmac").column(numbers.cast(pa.decimal128(20, 0))).to_pylist() == [coded("4711"), None, coded("-1")]
    assert mask("null").column(numbers).type == pa.int32()
    assert mask("hmac").column(pa.chunked_array([], pa.string())).to_pylist() == []


def test_a_constant_takes_the_place_of_any_type() -> None:
    hidden = mask("constant", value="-")
    for values in (
        [b"\xff", None],
        [[1.5], None],
        [dt.datetime(2001, 2, 3, tzinfo=dt.UTC), None],
        [True, None],
    ):
        assert hidden.column(pa.array(values)).to_pylist() == ["-", None]
    assert hidden.column(pa.array([], pa.binary())).type == pa.string()


@pytest.mark.parametrize("text", ["me@Peter Smith, Rome", "Anna <anna@a.com>", "x@", "@home", "a@b@c d", "a@.b"])
def test_what_only_looks_like_an_address_shows_nothing(text: str) -> None:
    assert mask("mail").text(text) == coded(text)[:24]


def test_a_mail_domain_stays_in_any_script() -> None:
    assert mask("mail").text("root@localhost").endswith("@localhost")
    assert mask("mail").text("a@b@mail.münchen.de").endswith("@mail.münchen.de")


def test_a_phone_shows_neither_a_short_number_nor_marks_of_other_scripts() -> None:
    assert mask("phone", first=4).text("4711") not in ("4711", "")
    assert mask("phone", first=64).text("49 170 1234567")[:2] != "49"
    assert mask("phone").text("नि é² +1")[:6] == "xx xx "


def test_a_phone_number_keeps_its_form_and_its_first_digits_however_it_is_written() -> None:
    phone = mask("phone", first=2)
    masked = phone.text("+49 (170) 123-4567 ext")
    assert masked[:3] == "+49"
    assert [c if not c.isdecimal() else "9" for c in masked] == list("+99 (999) 999-9999 xxx")
    digits = "".join(filter(str.isdecimal, masked))
    assert digits != "491701234567"
    assert "".join(filter(str.isdecimal, phone.text("49-170-1234567"))) == digits


@given(st.text(max_size=200), st.integers(0, 5), st.integers(0, 5))
def test_a_partial_mask_never_shows_a_value_whole(text: str, first: int, last: int) -> None:
    masked = mask("partial", first=first, last=last).text(text)
    assert len(masked) == len(text)
    if len(text) > first + last:
        assert (masked[:first], masked[len(text) - last :]) == (text[:first], text[len(text) - last :])
        assert set(masked[first : len(text) - last]) == {"*"}
    else:
        assert set(masked) <= {"*"}


@given(st.text(max_size=200))
def test_keyed_masks_take_any_text_and_always_say_the_same(text: str) -> None:
    for how in ("hmac", "mail", "phone"):
        masked = mask(how).text(text)
        assert masked == mask(how).text(text)
        if how == "phone":
            assert len(masked) == len(text)
        letters = "".join(filter(str.isalpha, text.partition("@")[0]))
        assert len(letters) < 4 or letters not in masked


def test_a_key_gets_into_no_pickle_and_no_repr() -> None:
    own = mask("hmac")
    assert SECRET.decode() not in repr(own)
    with pytest.raises(TypeError, match="isn't pickled"):
        pickle.dumps(own)
    assert pickle.loads(pickle.dumps(mask("partial", last=4))) == mask("partial", last=4)


def test_the_identity_tells_rules_apart_by_how_they_act() -> None:
    masks = [mask("null"), mask("constant"), mask("constant", value="x"), mask("partial"), mask("partial", last=1)]
    masks += [mask("hmac"), mask("mail"), mask("phone"), Mask(mask("hmac").rule, MaskKey(b"another key of 16"))]
    assert len({own.identity for own in masks}) == len(masks)
    elsewhere = MaskRule(match="b.*", columns=("d",), how="hmac", key_conn_id="other")
    assert Mask(elsewhere, KEY).identity == mask("hmac").identity
    assert SECRET.decode() not in mask("hmac").identity


def test_a_key_without_a_connection_is_told_how_to_make_one() -> None:
    """It was told to print the connection of a server."""
    rule = MaskRule(match="*.*", columns=("a",), how=config.MaskKind.HMAC, key_conn_id="keys")
    tables = config.Tables(include=("*.*",), masks=(rule,))
    with pytest.raises(
        ConfigError, match=r"AIRFLOW_CONN_KEYS: connection 'keys' is not defined; .*token_hex"
    ) as raised:
        mask_passwords(tables, partial(from_environment, environment={}))
    assert "tidegate connection" not in str(raised.value)
    made = json.dumps({"conn_type": "generic", "password": "k" * 32})
    environment = {"AIRFLOW_CONN_KEYS": made}
    assert mask_passwords(tables, partial(from_environment, environment=environment)) == {"keys": "k" * 32}


def test_a_short_key_is_refused_without_showing_it() -> None:
    with pytest.raises(ConfigError, match="has 5 bytes, and 16 are the fewest") as caught:
        mask_key("k", "short")
    assert "short" not in str(caught.value)


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("match: a.t, how: hmac, key_conn_id: k", "give columns, or comment"),
        ("match: a.t, columns: [c], how: hmac", "how: hmac needs key_conn_id"),
        ("match: a.t, columns: [c], how: null, key_conn_id: k", "how: null takes no key_conn_id"),
        ("match: a.t, columns: [c], how: mail, key_conn_id: k, last: 2", "how: mail takes no last"),
        ("match: a.t, columns: [c], how: constant, first: 2", "how: constant takes no first"),
        ("match: a.t, columns: [c], how: partial, value: x", "how: partial takes no value"),
        ("match: a.t, columns: [c], how: plain, key_conn_id: k", "how: plain takes no key_conn_id"),
        ("match: a.t, columns: [c], how: sha1", "how"),
        ("match: a.t, columns: [c]", "how"),
        ("match: a.t, columns: ['('], how: null", "not a regular expression"),
        ("match: a.t, comment: '(', how: null", "not a regular expression"),
    ],
)
def test_a_rule_that_can_not_be_followed_is_refused_when_the_file_is_read(rule: str, why: str) -> None:
    text = (
        "pipeline: p\nlake: {path: x}\nsources: {s: {conn_id: c, flavour: mysql}}\n"
        f"tables: {{include: ['a.*'], masks: [{{{rule}}}]}}\n"
    )
    with pytest.raises(ConfigError, match=why):
        config.parse(text, where="p.yaml")


def test_no_rule_goes_by_comments_that_a_changefeed_does_not_have() -> None:
    text = (
        "pipeline: p\nlake: {path: x}\nsources: {s: {flavour: ticdc, path: /feed, protocol: csv, time_zone: UTC}}\n"
        "tables: {include: ['a.*'], masks: [{match: '*.*', %s, how: null}]}\n"
    )
    config.parse(text % "columns: [c]", where="p.yaml")
    with pytest.raises(ConfigError, match="the files of source s have no comments of columns"):
        config.parse(text % "comment: pii", where="p.yaml")


def test_what_is_said_to_be_plain_is_not_masked_by_later_rules() -> None:
    text = (
        "pipeline: p\nlake: {path: x}\nsources: {s: {conn_id: c, flavour: mysql}}\n"
        "tables: {include: ['a.*'], masks: [{match: a.t, columns: [id], how: plain},"
        " {match: 'a.*', columns: ['.*'], how: null}]}\n"
    )
    kept = config.parse(text, where="p.yaml").tables.columns_of("a", "t")
    assert (kept.mask("ID", ""), kept.is_said_plain("ID", "")) == (None, True)
    assert kept.mask("b", "") is not None
    assert not kept.is_said_plain("b", "")
