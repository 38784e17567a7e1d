"""The manifests for Kubernetes: what they start is ours, with no more rights than it needs, and schemas take them."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from bookkeeper.bookie.config import config_from
from bookkeeper.launchers.waiting import until
from tests.architecture.test_documented_commands import wrong
from tests.boards.deployed import ROOT
from tests.deploy.tools import tool

PLACE = ROOT / "deploy/kubernetes"
MANIFESTS = sorted(path for path in PLACE.glob("*.yaml") if path.name != "kustomization.yaml")
SCHEMA = "1.32"
"""The version of Kubernetes whose schemas are asked."""


@cache
def documents() -> list[dict[str, Any]]:
    yaml = pytest.importorskip("yaml")
    return [document for path in MANIFESTS for document in yaml.safe_load_all(path.read_text())]


def pods() -> Iterator[tuple[str, dict[str, Any]]]:
    """(name, what its pods are)."""
    for document in documents():
        if "template" in document.get("spec", {}):
            yield document["metadata"]["name"], document["spec"]["template"]["spec"]


def containers() -> Iterator[tuple[str, dict[str, Any]]]:
    """(workload, container), also those beside it."""
    for name, pod in pods():
        for each in (*pod["containers"], *pod.get("initContainers", ())):
            yield name, each


def one(kind: str, name: str) -> dict[str, Any]:
    (found,) = [each for each in documents() if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return found


def test_there_is_a_workload_for_each_kind_of_server() -> None:
    assert {name for name, _ in pods()} == {"make-cluster", "bookie", "autorecovery", "streams", "spark"}
    listed = re.findall(r"^  - (\S+\.yaml)$", (PLACE / "kustomization.yaml").read_text(), flags=re.MULTILINE)
    assert sorted(listed) == [path.name for path in MANIFESTS]
    page = (PLACE / "README.md").read_text()
    assert all(f"[{path.name}]({path.name})" in page for path in MANIFESTS)


def test_what_is_started_is_a_command_of_ours_with_options_that_it_has() -> None:
    started = [" ".join(["bk", *each["args"]]) for _, each in containers() if "command" not in each]
    assert len(started) == 4
    assert [text for text in started if wrong(text) is not None] == []


@pytest.mark.rule("X44")
def test_no_container_is_root_or_may_become_more_than_it_is() -> None:
    for name, pod in pods():
        user = pod["securityContext"]
        assert user["runAsNonRoot"] and user["runAsUser"] > 0 and not pod["automountServiceAccountToken"], name
        assert user["seccompProfile"] == {"type": "RuntimeDefault"}
    for name, each in containers():
        context = each["securityContext"]
        assert not context["allowPrivilegeEscalation"] and context["readOnlyRootFilesystem"], name
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert "limits" in each["resources"] and "requests" in each["resources"]


def test_the_settings_of_the_bookies_are_settings_and_need_certificates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = tmp_path / "zookeeper.toml"
    text = one("ConfigMap", "cluster-files")["data"]["zookeeper.toml"]
    identity.write_text(text.replace("/run/keys", str(tmp_path)))
    for name in re.findall(r"/run/keys/([\w.-]+)", text):
        (tmp_path / name).touch(0o400)
    identity.chmod(0o644)  # as Kubernetes mounts it
    monkeypatch.setenv("BK_ZOOKEEPER", str(identity))
    text = one("ConfigMap", "bookie")["data"]["bookie.toml"]
    config = config_from({**tomllib.loads(text), "metadata_uri": one("ConfigMap", "cluster")["data"]["BK_METADATA"]})
    assert not config.insecure and config.tls.client_ca and config.tls.mode == "required"
    (bookie,) = [each for _, each in containers() if each["name"] == "bookie"]
    mounts = {each["mountPath"] for each in bookie["volumeMounts"]}
    assert str(Path(config.directory).parent) in mounts
    ports = {each["name"]: each["containerPort"] for each in bookie["ports"]}
    assert config.listen.endswith(f":{ports['bookie']}") and str(config.http_listen).endswith(f":{ports['http']}")


def test_probes_ask_pages_that_servers_have_and_a_start_may_take_long() -> None:
    asked = {
        (probe, each[probe]["httpGet"]["path"])
        for _, each in containers()
        for probe in ("startupProbe", "livenessProbe", "readinessProbe")
        if "httpGet" in each.get(probe, {})
    }
    assert asked == {("startupProbe", "/livez"), ("livenessProbe", "/livez"), ("readinessProbe", "/readyz")}
    (bookie,) = [each for _, each in containers() if each["name"] == "bookie"]
    assert bookie["startupProbe"]["periodSeconds"] * bookie["startupProbe"]["failureThreshold"] >= 1800


def test_one_bookie_goes_at_a_time_and_has_time_for_it() -> None:
    budget, bookies = one("PodDisruptionBudget", "bookies")["spec"], one("StatefulSet", "bookie")["spec"]
    assert budget["maxUnavailable"] == 1 and budget["selector"] == bookies["selector"]
    pod = bookies["template"]["spec"]
    (waits,) = re.findall(r"\+ (\d+)", pre_stop())
    assert pod["terminationGracePeriodSeconds"] >= int(waits) + 60 + 30, "the last question, and the bookie's end"
    assert one("Service", "bookies")["spec"]["publishNotReadyAddresses"]
    assert bookies["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}


def pre_stop() -> str:
    """The program that the kubelet runs before SIGTERM."""
    (bookie,) = [each for _, each in containers() if each["name"] == "bookie"]
    *shell, program = bookie["lifecycle"]["preStop"]["exec"]["command"]
    assert shell == ["/bin/sh", "-c"]
    return str(program)


def test_a_bookie_stops_as_soon_as_it_is_safe(tmp_path: Path) -> None:
    """The real program with a ``bk`` that says no twice, and then yes."""
    said = tmp_path / "asked"
    _stand_in(tmp_path / "bk", f'echo "$*" >> {said}; [ "$(wc -l < {said})" -ge 3 ]')
    _stand_in(tmp_path / "sleep", "exit 0")
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "POD_NAME": "bookie-1"}
    done = subprocess.run(["/bin/sh", "-c", pre_stop()], env=environment, timeout=600, check=False)
    assert done.returncode == 0
    assert said.read_text().splitlines() == ["bookies safe-to-stop bookie-1"] * 3
    assert wrong("bk bookies safe-to-stop bookie-1") is None


def test_a_bookie_that_is_never_safe_to_stop_stops_when_the_time_is_over(tmp_path: Path) -> None:
    _stand_in(tmp_path / "bk", "exit 1")
    _stand_in(tmp_path / "sleep", "exit 0")
    _stand_in(tmp_path / "date", f"echo x >> {tmp_path}/looks; echo $(($(wc -l < {tmp_path}/looks) * 100))")
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "POD_NAME": "bookie-1"}
    subprocess.run(["/bin/sh", "-c", pre_stop()], env=environment, timeout=600, check=False)
    assert len((tmp_path / "looks").read_text().splitlines()) == 7


def _stand_in(path: Path, program: str) -> None:
    path.write_text(f"#!/bin/sh\n{program}\n")
    path.chmod(0o755)


def test_keys_are_copied_for_their_owner_alone_and_again_when_they_change(tmp_path: Path) -> None:
    """The program of the container beside each server, as a process."""
    programs = {each["args"][0] for _, each in containers() if each["name"] == "keys"}
    (program,) = programs
    secret, keys = tmp_path / "secrets/bookie-tls", tmp_path / "keys"
    secret.mkdir(parents=True)
    keys.mkdir()
    (secret / "tls.key").write_text("one")
    (secret / "tls.key").chmod(0o440)
    paths = program.replace("/secrets/", f"{tmp_path}/secrets/").replace("/run/keys", str(keys))
    process = subprocess.Popen(["/bin/sh", "-c", paths.replace("sleep 30", "sleep 0.05")])
    copied = keys / "bookie-tls-tls.key"
    try:
        until(lambda: (keys / "copied").exists(), "the first copies")
        assert copied.read_text() == "one" and stat.S_IMODE(copied.stat().st_mode) == 0o400
        (secret / "tls.key").unlink()
        (secret / "tls.key").write_text("two")
        until(lambda: copied.read_text() == "two", "the next copies")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
    named = {str(path) for _, each in containers() for path in re.findall(r"/run/keys/[\w.-]+", str(each))}
    named |= set(
        re.findall(r"/run/keys/[\w.-]+", str([one("ConfigMap", name) for name in ("bookie", "cluster-files")]))
    )
    mounted = {each["secret"]["secretName"] for _, pod in pods() for each in pod["volumes"] if "secret" in each}
    files = {f"/run/keys/{name}-{file}" for name in mounted for file in ("tls.crt", "tls.key", "ca.crt", "tokens")}
    assert named - {"/run/keys/copied"} <= files


def test_kubernetes_schemas_take_every_manifest() -> None:
    program = tool("kubernetes-validate")
    for path in MANIFESTS:
        command = [program, "--strict", "-k", SCHEMA, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_kubectl_puts_them_together() -> None:
    done = subprocess.run([tool("kubectl"), "kustomize", str(PLACE)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\nkind: ") + done.stdout.startswith("kind: ") >= len(documents())
