"""Keys of PD's etcd, through the HTTP/JSON gateway at PD's client URLs.

In:  PD's URLs; a key.
Out: its value and the revision of its last change; a change of the value, if it is still at that
     revision.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tidegate.config import TidbSource
from tidegate.errors import SourceRefused, SourceUnavailable
from tidegate.limits import PUMP_PD_SECONDS

_REFUSALS: Final = (401, 403, 404)
# PD's own key (pd/pkg/utils/keypath), eight bytes, big end first.
_CLUSTER_ID: Final = "/pd/cluster_id"
_CLUSTER_ID_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class EtcdEntry:
    """value: None: the key isn't there, revision is 0."""

    value: bytes | None = None
    revision: int = 0


@dataclass(frozen=True, slots=True)
class Etcd:
    """urls: of PD, one after the other is asked. certificate, key, ca: PEM files for https."""

    urls: Sequence[str]
    certificate: Path | None = None
    key: Path | None = None
    ca: Path | None = None

    def get(self, key: str) -> EtcdEntry:
        """Raises SourceUnavailable, SourceRefused."""
        return _entry(self._ask("range", {"key": _text(key.encode())}))

    def under(self, prefix: str) -> list[bytes]:
        """The values of all keys that begin so. Raises SourceUnavailable, SourceRefused."""
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        answer = self._ask("range", {"key": _text(prefix.encode()), "range_end": _text(end.encode())})
        return [base64.b64decode(pair.get("value", "")) for pair in answer.get("kvs", ())]

    def swap(self, key: str, value: bytes, revision: int) -> tuple[bool, EtcdEntry]:
        """(True, the new entry), or, where the key isn't at that revision, (False, the present
        one). revision: 0 makes the key. Raises SourceUnavailable, SourceRefused.
        """
        name = _text(key.encode())
        answer = self._ask(
            "txn",
            {
                "compare": [{"key": name, "target": "MOD", "result": "EQUAL", "mod_revision": str(revision)}],
                "success": [{"request_put": {"key": name, "value": _text(value)}}],
                "failure": [{"request_range": {"key": name}}],
            },
        )
        if answer.get("succeeded"):
            return True, EtcdEntry(value, int(answer["header"]["revision"]))
        return False, _entry(answer["responses"][0]["response_range"])

    def _ask(self, what: str, question: dict[str, Any]) -> Any:
        why: Exception = OSError("no URL")
        for url in self.urls:
            try:
                return self._post(f"{url.rstrip('/')}/v3/kv/{what}", json.dumps(question).encode())
            except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
                why = error
        where = ", ".join(self.urls)
        if isinstance(why, urllib.error.HTTPError) and why.code in _REFUSALS:
            raise SourceRefused(
                f"PD refuses the question: {why}",
                where=where,
                remedy="its gRPC gateway has to be on (enable-grpc-gateway), and open to this Pump",
            ) from None
        raise SourceUnavailable(
            f"can't ask PD: {why}", where=where, remedy="look at `pd` in the pipeline file"
        ) from None

    def _post(self, address: str, body: bytes) -> Any:
        context = None
        if address.startswith("https:"):
            context = ssl.create_default_context(cafile=self.ca)
            if self.certificate is not None:
                context.load_cert_chain(self.certificate, self.key)
        request = urllib.request.Request(address, body, {"Content-Type": "application/json"})  # noqa: S310
        with urllib.request.urlopen(request, timeout=PUMP_PD_SECONDS, context=context) as answer:  # noqa: S310
            return json.loads(answer.read())


def cluster_of(etcd: Etcd) -> int | None:
    """The id that TiDB gives with each write; None where PD doesn't say it. Raises SourceUnavailable, SourceRefused."""
    value = etcd.get(_CLUSTER_ID).value
    return int.from_bytes(value, "big") if value is not None and len(value) == _CLUSTER_ID_BYTES else None


def etcd_of(entry: TidbSource) -> Etcd:
    """PD's, of a source that names it."""
    return Etcd(entry.pd, entry.tls_certificate, entry.tls_key, entry.tls_ca)


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _entry(answer: dict[str, Any]) -> EtcdEntry:
    for pair in answer.get("kvs", ()):
        return EtcdEntry(base64.b64decode(pair.get("value", "")), int(pair["mod_revision"]))
    return EtcdEntry()
