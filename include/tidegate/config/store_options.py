"""Options of an object store, and of Spark, in a pipeline file: none of them may be a secret.

In:  a mapping of the file.
Out: the same, or ValueError with where a secret belongs. No value is repeated.

A pipeline file is read by many, and its options stand in Airflow's database besides (the triggers that watch a lake).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Final, TypeAlias

from pydantic import AfterValidator

_SECRET: Final = re.compile(
    r"secret|passw|token|credential|private|sas_|sas$|signature|(access|account|master|storage|encryption)[._]?key$"
    r"|service_account_key|customer_key|bearer"
)
# These names only say where a secret lies, or that there is none: they are no secrets.
_PLACE: Final = re.compile(
    r"(_file|_path|_uri|_url|_endpoint|_provider|service_account|application_credentials|skip_signature)$"
)
# Spark's names have dots. Many of them have a word for a secret, and mean a place, a class or a
# switch.
_OF_SPARK: Final = re.compile(
    r"(secret|passw(or)?d|token)$|secret[._]?key$|session\.token|account\.key|client\.secret|private\.key|\.sas\."
)
_WITH_PASSWORD: Final = re.compile(r"://[^/@\s]*:[^/@\s]*@")


def is_secret(key: str, value: str) -> bool:
    """Whether an option's name, or an address in its value, says so."""
    named = _SECRET.search(key.lower()) and not _PLACE.search(key.lower())
    return bool(named or _WITH_PASSWORD.search(value))


def _without_secrets(options: Mapping[str, str]) -> dict[str, str]:
    secrets = sorted(key for key, value in options.items() if is_secret(key, value))
    if secrets:
        raise ValueError(
            f"a secret has no place in a pipeline file ({', '.join(secrets)}): give conn_id, and put it into that"
            " connection's extra"
        )
    return dict(options)


def _without_sparks_secrets(settings: Mapping[str, str]) -> dict[str, str]:
    """Refuse secrets in Spark's settings: they would also stand in argv."""
    secrets = [key for key, value in settings.items() if _OF_SPARK.search(key.lower()) or _WITH_PASSWORD.search(value)]
    if secrets:
        raise ValueError(
            f"a secret has no place in a pipeline file ({', '.join(sorted(secrets))}): a store's keys belong in the"
            " extra of lake.conn_id, and others in spark-defaults.conf"
        )
    return dict(settings)


StoreOptions: TypeAlias = Annotated[dict[str, str], AfterValidator(_without_secrets)]
SparkSettings: TypeAlias = Annotated[dict[str, str], AfterValidator(_without_sparks_secrets)]
