"""What a connection costs before its first byte is sent."""

from __future__ import annotations

import ssl

import pytest

from tidegate.mysql.connecting.client import Client


def test_certificates_are_read_only_where_they_are_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[ssl.SSLContext] = []
    monkeypatch.setattr(ssl.SSLContext, "load_default_certs", lambda self, *_: read.append(self))
    preferred = Client(defer_connect=True)
    assert not read
    assert preferred.ctx.verify_mode is ssl.CERT_NONE
    assert not preferred.ctx.check_hostname
    assert preferred.ctx is Client(defer_connect=True).ctx
    asked = Client(defer_connect=True, ssl_verify_identity=True, ssl={"check_hostname": True})
    assert read == [asked.ctx]
