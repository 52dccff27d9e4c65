"""docker/ is what it says, as far as no container engine is needed: compose's file, its pipeline, the Helm chart.

In:  the files; compose-spec.json, the schema of compose files; helm, if it is on this machine.
Out: a word of theirs that nothing else knows.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tidegate import config

DOCKER = Path(__file__).resolve().parents[3] / "docker"
SCHEMA = Path(__file__).with_name("compose-spec.json")
# Any pipeline file will do.
VALUES = json.dumps({"pipelines": {"shop.yaml": (DOCKER / "pipelines/shop.yaml").read_text()}, "env": {"A": "b"}})
HELM_SECONDS_MAX = 120


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    parsed: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text())
    return parsed


def test_compose_s_file_is_of_its_schema(compose: dict[str, Any]) -> None:
    schema = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    assert [f"{error.json_path}: {error.message}" for error in schema.iter_errors(compose)] == []
    compose["services"]["mysql"] |= {"imagee": "mysql"}
    assert not schema.is_valid(compose), "a slip is seen"
    del compose["services"]["mysql"]["imagee"]


def test_what_compose_s_services_name_is_there(compose: dict[str, Any]) -> None:
    named = set(re.findall(r"\$\{(\w+)", (DOCKER / "compose.yaml").read_text()))
    assert named == set(re.findall(r"^(\w+)=$", (DOCKER / "example.env").read_text(), re.MULTILINE))
    services = compose["services"]
    for name, service in services.items():
        assert set(service.get("depends_on", ())) <= services.keys(), name
        for place in (volume.partition(":")[0] for volume in service.get("volumes", ())):
            assert (DOCKER / place).exists() if place.startswith(".") else place in compose["volumes"], (name, place)


def test_compose_s_pipeline_is_one_and_has_its_connections(compose: dict[str, Any]) -> None:
    pipeline = config.load(DOCKER / "pipelines/shop.yaml")
    asked = {pipeline.lake.conn_id, pipeline.apply.spark_conn_id}
    asked |= {source.conn_id for source in pipeline.sources.values()}
    given = compose["x-tidegate"]["environment"]
    connections = {name: text for name, text in given.items() if name.startswith("AIRFLOW_CONN_")}
    assert {f"AIRFLOW_CONN_{conn_id.upper()}" for conn_id in asked if conn_id} == connections.keys()
    for text in connections.values():
        assert json.loads(text)["conn_type"]
    folders = {volume.split(":")[1] for volume in compose["x-tidegate"]["volumes"]}
    assert str(pipeline.capture.value_log_path) in folders, "captured bytes outlive their container"


def helm(values: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which("helm")
    if program is None:
        pytest.skip("no helm here: go install helm.sh/helm/v3/cmd/helm@v3.22.0")
    command = [program, "template", "cdc", str(DOCKER / "helm"), "--values", "-"]
    return subprocess.run(command, input=values, capture_output=True, text=True, timeout=HELM_SECONDS_MAX, check=False)


@pytest.fixture(scope="module")
def chart() -> list[dict[str, Any]]:
    rendered = helm(VALUES)
    assert rendered.returncode == 0, rendered.stderr
    return [each for each in yaml.safe_load_all(rendered.stdout) if each]


def _pods(chart: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {each["metadata"]["name"]: each["spec"]["template"] for each in chart if "template" in each.get("spec", {})}


def test_the_chart_has_compose_s_parts(chart: list[dict[str, Any]], compose: dict[str, Any]) -> None:
    parts = {name.removeprefix("cdc-") for name in _pods(chart)}
    others = {"mysql", "postgres", "redis", "s3", "bucket", "spark-master", "spark-worker", "prometheus", "grafana"}
    assert {part.replace("worker-capture", "capture") for part in compose["services"].keys() - others} == parts


def test_the_chart_s_objects_find_each_other(chart: list[dict[str, Any]]) -> None:
    pods, maps = _pods(chart), {each["metadata"]["name"] for each in chart if each["kind"] == "ConfigMap"}
    for name, pod in pods.items():
        (container,) = pod["spec"]["containers"]
        claims = [each for made in chart for each in made.get("spec", {}).get("volumeClaimTemplates", ())]
        volumes = {each["name"] for each in (*pod["spec"]["volumes"], *(each["metadata"] for each in claims))}
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes, name
        assert {each["configMap"]["name"] for each in pod["spec"]["volumes"]} <= maps, name
        assert all(isinstance(word, str) for word in container["args"]), name
        assert {"name": "A", "value": "b"} in container["env"], name
        assert container["resources"]["requests"], name
    for each in chart:
        spec = each.get("spec", {})
        if "selector" in spec and each["kind"] != "Service":
            _assert_in(spec["selector"]["matchLabels"], spec["template"]["metadata"]["labels"])
        elif each["kind"] == "Service":
            (pod,) = (pod for pod in pods.values() if pod["metadata"]["labels"].items() >= spec["selector"].items())
            ports = {port["name"] for port in pod["spec"]["containers"][0].get("ports", ())}
            assert {port["targetPort"] for port in spec["ports"] if "targetPort" in port} <= ports


def _assert_in(few: Mapping[str, str], many: Mapping[str, str]) -> None:
    assert few.items() <= many.items()


def test_the_chart_s_environment_is_compose_s(chart: list[dict[str, Any]], compose: dict[str, Any]) -> None:
    """Only what says where things are may differ."""
    theirs = {name: str(value) for name, value in compose["x-tidegate"]["environment"].items()}
    (container,) = _pods(chart)["cdc-scheduler"]["spec"]["containers"]
    for variable in container["env"]:
        name = variable["name"]
        if name in theirs and not name.endswith("_URL"):
            assert variable["value"] == theirs[name], name


def test_the_chart_without_a_pipeline_is_refused() -> None:
    rendered = helm("{}")
    assert rendered.returncode != 0
    assert "pipelines: give at least one file" in rendered.stderr
