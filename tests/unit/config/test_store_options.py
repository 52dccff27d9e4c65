"""A secret in a pipeline file's storage_options, or in its spark_conf, is refused, and in no message."""

from __future__ import annotations

import pytest

from tidegate import config
from tidegate.errors import ConfigError

FILE = """pipeline: p
lake: {{path: "s3://bucket/p", storage_options: {{{lake}}}}}
sources:
  feed: {{flavour: ticdc, path: "s3://bucket/f", protocol: csv, time_zone: UTC, storage_options: {{{feed}}}}}
tables: {{include: ["*.*"]}}
"""

SECRETS = [
    "aws_secret_access_key", "AWS_SECRET_ACCESS_KEY", "aws_session_token", "azure_storage_account_key",
    "AZURE_STORAGE_SAS_KEY", "sas_token", "azure_client_secret", "google_service_account_key", "access_key",
    "bearer_token", "proxy_password", "aws_sse_customer_key_base64",
]  # fmt: skip
PLAIN = [
    "aws_region", "aws_endpoint", "aws_allow_http", "aws_access_key_id", "aws_conditional_put", "account_name",
    "aws_web_identity_token_file", "google_service_account", "aws_container_credentials_relative_uri", "timeout",
    "google_application_credentials_path", "google_application_credentials", "aws_skip_signature", "skip_signature",
]  # fmt: skip


@pytest.mark.parametrize("where", ["lake", "feed"])
@pytest.mark.parametrize("key", SECRETS)
def test_a_secret_is_refused_with_the_place_where_it_belongs(key: str, where: str) -> None:
    options = {"lake": "", "feed": ""} | {where: f"{key}: hunter2"}
    with pytest.raises(
        ConfigError, match=rf"a secret has no place in a pipeline file \({key}\): give conn_id"
    ) as caught:
        config.parse(FILE.format(**options), where="p.yaml")
    assert "hunter2" not in str(caught.value)


def test_a_password_inside_an_address_is_a_secret_too() -> None:
    with pytest.raises(ConfigError, match=r"a secret has .* \(aws_endpoint\)") as caught:
        config.parse(FILE.format(lake='aws_endpoint: "http://user:hunter2@host:9000"', feed=""), where="p.yaml")
    assert "hunter2" not in str(caught.value)


def test_what_is_no_secret_is_taken() -> None:
    options = ", ".join(f"{key}: x" for key in PLAIN)
    assert set(config.parse(FILE.format(lake=options, feed=options), where="p.yaml").lake.storage_options) == set(PLAIN)


SPARKS_SECRETS = [
    "spark.hadoop.fs.s3a.secret.key", "spark.hadoop.fs.s3a.session.token", "spark.authenticate.secret",
    "spark.hadoop.fs.azure.account.key.acc.dfs.core.windows.net", "spark.ssl.keyStorePassword", "spark.my.passwd",
    "spark.hadoop.fs.azure.account.oauth2.client.secret.acc.dfs.core.windows.net",
    "spark.kubernetes.authenticate.submission.oauthToken", "spark.hadoop.fs.gs.auth.service.account.private.key",
    "spark.hadoop.fs.azure.sas.container.acc.blob.core.windows.net", "spark.hadoop.fs.s3a.bucket.b.secret.key",
]  # fmt: skip
SPARKS_PLAIN = [
    "spark.executor.cores", "spark.hadoop.fs.s3a.access.key", "spark.hadoop.fs.s3a.aws.credentials.provider",
    "spark.security.credentials.hive.enabled", "spark.kubernetes.authenticate.submission.oauthTokenFile",
    "spark.kubernetes.driver.secrets.keys", "spark.authenticate.secret.file", "spark.redaction.regex",
    "spark.kubernetes.driver.secretKeyRef.NAME", "spark.hadoop.fs.azure.account.auth.type", "spark.yarn.keytab",
]  # fmt: skip


@pytest.mark.parametrize("key", SPARKS_SECRETS)
def test_a_secret_among_sparks_settings_is_refused(key: str) -> None:
    """It would stand in the arguments of spark-submit, and in Airflow's database."""
    text = FILE.format(lake="", feed="") + f"apply: {{spark_conf: {{{key}: hunter2}}}}\n"
    with pytest.raises(ConfigError, match=rf"a secret has no place in a pipeline file \({key}\)") as caught:
        config.parse(text, where="p.yaml")
    assert "hunter2" not in str(caught.value)


def test_sparks_settings_that_are_no_secrets_are_taken() -> None:
    text = (
        FILE.format(lake="", feed="") + f"apply: {{spark_conf: {{{', '.join(f'{key}: x' for key in SPARKS_PLAIN)}}}}}\n"
    )
    assert set(config.parse(text, where="p.yaml").apply.spark_conf) == set(SPARKS_PLAIN)
