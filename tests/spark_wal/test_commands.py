from __future__ import annotations

import sqlite3
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from bookkeeper.gateways.caller import Caller
from bookkeeper.gateways.tokens import TokenBook
from bookkeeper.meta import init_cluster
from bookkeeper.real import system_seams
from bookkeeper.real.disk import PosixDisk
from spark_wal.commands import gateway
from spark_wal.webhdfs import service as service_module
from spark_wal.webhdfs.config import GatewayConfig
from spark_wal.webhdfs.ownership.open_backing import open_backing
from spark_wal.webhdfs.service import ServingConfig, WebHdfsService


def test_help_reads_well() -> None:
    shown = CliRunner().invoke(gateway, ["webhdfs", "--help"]).output
    for word in (
        "--metadata",
        "--listen",
        "--advertise",
        "--namespace",
        "--quota",
        "--names-quota",
        "checkpoints",
        "--tls-cert",
        "--client-ca",
        "--token-file",
        "--tls-crl",
        "--connections-max",
        "--slow-client-s",
        "--file-bytes-max",
        "--temporary-keep-s",
        "--growing",
        "--upload-log",
    ):
        assert word in shown


@pytest.mark.parametrize(
    "option",
    [
        ("--connections-max", "0"),
        ("--connections-per-host-max", "-1"),
        ("--handshakes-max", "many"),
        ("--slow-client-s", "0"),
        ("--upload-idle-s", "-5"),
        ("--file-bytes-max", "0"),
        ("--temporary-keep-s", "-1"),
    ],
)
def test_limits_that_limit_nothing_are_refused(option: tuple[str, str]) -> None:
    refused = CliRunner().invoke(gateway, ["webhdfs", "--metadata", "mem:x", *option])
    assert refused.exit_code == 2
    assert option[0] in refused.output


@pytest.mark.parametrize(
    ("given", "growing"),
    [
        ((), ("*.inprogress", "eventlog_v2_*/**")),
        (("--growing", "none"), ()),
        (("--growing", "*.log", "--growing", "/logs/**"), ("*.log", "/logs/**")),
    ],
)
def test_which_files_grow_is_told_to_the_gateway(
    monkeypatch: pytest.MonkeyPatch, given: tuple[str, ...], growing: tuple[str, ...]
) -> None:
    seen: list[ServingConfig] = []

    def service(config: ServingConfig, seams: object) -> WebHdfsService:
        seen.append(config)
        raise OSError("enough")

    monkeypatch.setattr(service_module, "WebHdfsService", service)
    assert CliRunner().invoke(gateway, ["webhdfs", "--metadata", "mem:x", *given]).exit_code == 1
    assert [config.gateway.owner.growing for config in seen] == [growing]
    refused = CliRunner().invoke(gateway, ["webhdfs", "--metadata", "mem:x", "--growing", "**"])
    assert refused.exit_code != 0
    assert "would make every file one that grows" in refused.output


@pytest.mark.parametrize(("given", "kept_s"), [((), 86400.0), (("--temporary-keep-s", "0"), 0.0)])
def test_how_long_temporary_files_stay_is_told_to_the_gateway(
    monkeypatch: pytest.MonkeyPatch, given: tuple[str, ...], kept_s: float
) -> None:
    seen: list[ServingConfig] = []

    def service(config: ServingConfig, seams: object) -> WebHdfsService:
        seen.append(config)
        raise OSError("enough")

    monkeypatch.setattr(service_module, "WebHdfsService", service)
    assert CliRunner().invoke(gateway, ["webhdfs", "--metadata", "mem:x", *given]).exit_code == 1
    assert [config.gateway.owner.temporary_keep_s for config in seen] == [kept_s]
    refused = CliRunner().invoke(gateway, ["webhdfs", "--metadata", "mem:x", "--temporary-keep-s", "nan"])
    assert "--temporary-keep-s" in refused.output
    assert "'nan' is not a number" in refused.output


@pytest.mark.parametrize(
    ("given", "environment", "times"),
    [
        ((), {}, (1.0, 10.0)),
        (("--lease-s", "8", "--metadata-session", "80"), {}, (8.0, 80.0)),
        ((), {"BK_METADATA_SESSION": "40"}, (1.0, 40.0)),
    ],
)
def test_how_long_a_lease_and_a_session_last_is_told_to_the_gateway(
    monkeypatch: pytest.MonkeyPatch, given: tuple[str, ...], environment: dict[str, str], times: tuple[float, float]
) -> None:
    seen: list[ServingConfig] = []

    def service(config: ServingConfig, seams: object) -> WebHdfsService:
        seen.append(config)
        raise OSError("enough")

    monkeypatch.setattr(service_module, "WebHdfsService", service)
    assert CliRunner().invoke(gateway, ["webhdfs", "--metadata", "mem:x", *given], env=environment).exit_code == 1
    assert [(config.gateway.lease_s, config.gateway.metadata_session_s) for config in seen] == [times]


async def test_a_gateway_of_a_cluster_has_that_lease_and_that_session(tmp_path: Path) -> None:
    uri = f"sqlite://{tmp_path}/m.db"
    await init_cluster(uri, system_seams())
    config = GatewayConfig(lease_s=8.0, metadata_session_s=80.0)
    backing = await open_backing(uri, system_seams(), namespace="n", owner="o", address="h:1", config=config)
    try:
        with sqlite3.connect(tmp_path / "m.db") as file:
            (until,) = file.execute("SELECT max(lease_until) FROM sessions").fetchone()
        assert 11 < until - time.clock_gettime(time.CLOCK_BOOTTIME) <= 80
    finally:
        await backing.close()


def test_wrong_options_are_refused_with_a_reason() -> None:
    runner = CliRunner()
    listen = runner.invoke(gateway, ["webhdfs", "--metadata", "mem:x", "--listen", "nowhere"])
    assert listen.exit_code == 2
    assert "expected HOST:PORT" in listen.output
    quota = runner.invoke(gateway, ["webhdfs", "--metadata", "mem:x", "--quota", "/a=lots"])
    assert "expected /PATH=BYTES" in quota.output
    names = runner.invoke(gateway, ["webhdfs", "--metadata", "mem:x", "--names-quota", "a=3"])
    assert "expected /PATH=NAMES" in names.output
    assert "--metadata" in runner.invoke(gateway, ["webhdfs"], env={"BK_METADATA": ""}).output


def test_a_gateway_that_cannot_start_ends_with_one_sentence(tmp_path: Path) -> None:
    disk = PosixDisk()
    disk.make_directories(str(tmp_path / "default"))
    lock = disk.lock(str(tmp_path / "default" / "lock"))
    result = CliRunner().invoke(gateway, ["webhdfs", "--metadata", f"file://{tmp_path}", "--listen", "127.0.0.1:0"])
    lock.release()
    assert result.exit_code == 1
    assert "another gateway uses" in result.output


@pytest.mark.rule("X1", "X43")
def test_what_is_not_safe_does_not_start_and_says_what_is_missing(tmp_path: Path) -> None:
    def said(*options: str) -> str:
        result = CliRunner().invoke(gateway, ["webhdfs", "--metadata", "mem:x", *options])
        assert result.exit_code == 1
        return result.output

    beyond = ("--listen", "0.0.0.0:0")
    assert "--tls-cert and --tls-key" in said(*beyond)
    assert "--insecure" in said(*beyond, "--tls-cert", "c", "--tls-key", "k")
    assert "needs TLS" in said("--client-ca", "ca")
    assert "needs TLS" in said("--tls-crl", "crl")
    assert "needs --client-ca" in said("--tls-cert", "c", "--tls-key", "k", "--tls-crl", "crl")
    assert "together" in said("--tls-cert", "c")
    assert "cannot be used" in said("--tls-cert", "/none", "--tls-key", "/none")
    tokens = tmp_path / "tokens"
    tokens.touch(0o644)
    assert "chmod 600" in said("--token-file", str(tokens))


@pytest.mark.rule("X48")
def test_a_token_is_printed_once_and_kept_as_a_hash(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    runner = CliRunner()
    made = [
        runner.invoke(gateway, ["token", "alice", "--token-file", str(path), *more]).output.strip()
        for more in ([], ["--root", "/etl"])
    ]
    text = path.read_text()
    assert not [token for token in made if token in text]
    assert text.count("signing-key") == 1
    book = TokenBook.parse(text, "tokens")
    assert [book.owner(token, 0) for token in made] == [Caller("alice"), Caller("alice", ("/etl",))]
    refused = runner.invoke(gateway, ["token", "a b", "--token-file", str(path)])
    assert refused.exit_code == 1
    path.chmod(0o644)
    assert "chmod 600" in runner.invoke(gateway, ["token", "bob", "--token-file", str(path)]).output


def test_settings_are_printed_as_spark_reads_them(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.touch(0o600)
    token.write_text("hunter2hunter2")
    arguments = ["https://127.0.0.1:9871", "--dir", str(tmp_path / "d"), "--token-file", str(token)]
    shown = CliRunner().invoke(gateway, ["spark-conf", *arguments, "--client-id", "alice", "--spark", "4.0.5"]).output
    lines = dict(line.split(" ", 1) for line in shown.splitlines())
    assert lines["#"] == "checkpointLocation=swebhdfs://127.0.0.1:9871/NAME"
    assert lines["spark.hadoop.dfs.webhdfs.oauth2.client.id"] == "alice"
    assert "hunter2" not in shown
    old = CliRunner().invoke(gateway, ["spark-conf", *arguments, "--client-id", "alice", "--spark", "3.5.9"])
    assert "leave client_id out" in old.output


def test_settings_for_several_gateways_are_printed_with_their_name(tmp_path: Path) -> None:
    """The cause: the command took one address, so that a protected pair had to be put together by hand."""
    urls = ["https://gw1:9871", "https://gw2:9871"]
    for more, name in (([], "ckpt"), (["--name", "mine"], "mine")):
        arguments = ["spark-conf", *urls, "--dir", str(tmp_path / "d"), *more]
        shown = CliRunner().invoke(gateway, arguments).output
        lines = dict(line.split(" ", 1) for line in shown.splitlines())
        assert lines["#"] == f"checkpointLocation=swebhdfs://{name}/NAME"
        assert lines[f"spark.hadoop.dfs.ha.namenodes.{name}"] == "g1,g2"
    refused = CliRunner().invoke(gateway, ["spark-conf", *urls, "--dir", str(tmp_path / "d"), "--spark", "4"])
    assert (refused.exit_code, refused.output.count("\n")) == (1, 1)
    assert "expected a version of Spark such as 4.0" in refused.output


def test_gateways_of_other_packages_are_listed_and_loaded_when_they_are_needed() -> None:
    listed = CliRunner().invoke(gateway, ["--help"])
    assert listed.exit_code == 0
    assert {"grpc", "webhdfs", "token"} <= {line.split()[0] for line in listed.output.splitlines() if line.strip()}


def test_a_gateway_without_its_libraries_says_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "segments.gateway.command", None)
    refused = CliRunner().invoke(gateway, ["grpc", "--metadata", "mem:x"])
    assert refused.exit_code == 1
    assert "bk gateway grpc needs the Python package segments" in refused.output
