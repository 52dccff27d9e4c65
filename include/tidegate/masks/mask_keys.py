"""The keys of masks: passwords of connections, which never leave the driver.

In:  the connections that tables.masks names.
Out: MaskKey. Airflow's parse of the DAGs imports this, so nothing heavy may be here.
"""

from __future__ import annotations

import hmac
from typing import Final, NoReturn

from tidegate.config import Tables
from tidegate.connections import Connections
from tidegate.errors import ConfigError, NoConnectionError
from tidegate.limits import MASK_KEY_BYTES_MIN

_MAKE_ONE: Final = (
    'set this variable to {"conn_type": "generic", "password": "..."}, whose password is the key of masks; a new one:'
    ' python3 -c "import secrets; print(secrets.token_hex(32))"'
)


class MaskKey:
    """A key of HMAC-SHA256. It goes into no pickle, repr or log: masks that need it are made in the driver alone."""

    __slots__ = ("_secret", "fingerprint")

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self.fingerprint = hmac.digest(secret, b"tidegate: fingerprint of a mask's key", "sha256")[:6].hex()

    def digest(self, text: str) -> bytes:
        """32 bytes."""
        return hmac.digest(self._secret, text.encode(), "sha256")

    def __repr__(self) -> str:
        return f"MaskKey({self.fingerprint})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("the key of a mask isn't pickled")


def mask_key(conn_id: str, password: str) -> MaskKey:
    """Raises ConfigError for a password that is too short."""
    secret = password.encode()
    if len(secret) < MASK_KEY_BYTES_MIN:
        raise ConfigError(
            f"the key of masks has {len(secret)} bytes, and {MASK_KEY_BYTES_MIN} are the fewest",
            where=f"connection {conn_id}",
            remedy='give it a random password: python3 -c "import secrets; print(secrets.token_hex(32))"',
        )
    return MaskKey(secret)


def mask_passwords(tables: Tables, connections: Connections) -> dict[str, str]:
    """The passwords that the masks of a pipeline file name, by the connection's id. Raises ConfigError."""
    passwords = {}
    for conn_id in sorted({rule.key_conn_id for rule in tables.masks if rule.key_conn_id is not None}):
        try:
            passwords[conn_id] = connections(conn_id).password
        except NoConnectionError as error:
            raise ConfigError(error.what, where=error.where, remedy=_MAKE_ONE) from None
        mask_key(conn_id, passwords[conn_id])
    return passwords
