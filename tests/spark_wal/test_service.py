from __future__ import annotations

import json
import socket
import ssl
import urllib.request
from pathlib import Path

import pytest

import spark_wal
from bookkeeper.errors import ConfigError
from bookkeeper.gateways.access_control import AccessConfig
from bookkeeper.gateways.server_tls import ServerTlsFiles
from examples.certificates import Authority
from spark_wal.service import CheckpointService, file_manager, spark_conf
from tests.spark_wal.processes import until


def test_a_service_starts_answers_and_stops(tmp_path: Path) -> None:
    with spark_wal.checkpoint_service(f"file://{tmp_path}/place", listen="127.0.0.1:0") as wal:
        with urllib.request.urlopen(f"{wal.url}/health") as reply:
            assert json.load(reply)["role"] == "owner"
        assert wal.location("/flights/") == f"webhdfs://{wal.address}/flights"
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(f"{wal.url}/health")


def test_a_service_that_cannot_start_says_why_here(tmp_path: Path) -> None:
    with pytest.raises(ConfigError), spark_wal.checkpoint_service("nonsense", listen="127.0.0.1:0"):
        pass


def test_a_running_gateway_is_used_as_it_is() -> None:
    with socket.socket() as gateway:
        gateway.bind(("127.0.0.1", 0))
        gateway.listen()
        address = f"127.0.0.1:{gateway.getsockname()[1]}"
        with spark_wal.checkpoint_service(f"http://{address}") as wal:
            assert wal.location("a/b") == f"webhdfs://{address}/a/b"
        with spark_wal.checkpoint_service(f"https://{address}") as wal:
            assert wal.location("a") == f"swebhdfs://{address}/a"
            assert wal.url == f"https://{address}"


@pytest.mark.parametrize("url", ["http://", "http://gateway", "http://gateway:port"])
def test_a_url_without_host_or_port_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="expected http://HOST:PORT"), spark_wal.checkpoint_service(url):
        pass


def test_a_url_where_nobody_listens_is_refused_at_once(tmp_path: Path) -> None:
    """The URL of a gateway was never tried: a query found out, minutes later, that there was none."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with (
            pytest.raises(ConnectionError, match=rf"no gateway answers at {url} \(Connection refused\): start one"),
            spark_wal.checkpoint_service(url),
        ):
            pass


@pytest.mark.rule("S4")
def test_a_service_removes_temporary_files_that_were_left_behind(tmp_path: Path) -> None:
    uri = f"file://{tmp_path}/place"
    with spark_wal.checkpoint_service(uri, listen="127.0.0.1:0", temporary_keep_s=1) as wal:
        target = f"{wal.url}/webhdfs/v1/c/.0.0a1b2c3d-0a1b-2c3d-4e5f-0a1b2c3d4e5f.tmp?op=CREATE&namenoderpcaddress=x"
        with urllib.request.urlopen(urllib.request.Request(target, b"plan", method="PUT")) as reply:
            assert reply.status == 201

        def temporary_files() -> int:
            with urllib.request.urlopen(f"{wal.url}/health") as reply:
                return int(json.load(reply)["temporary_files"])

        assert temporary_files() == 1
        until(lambda: temporary_files() == 0, 60)
    with (
        pytest.raises(ConfigError, match="its own"),
        spark_wal.checkpoint_service("http://gateway:9870", temporary_keep_s=0),
    ):
        pass
    with (
        pytest.raises(ConfigError, match="its own"),
        spark_wal.checkpoint_service("http://gateway:9870", growing=["x"]),
    ):
        pass


def test_an_exception_in_the_block_ends_the_service_too(tmp_path: Path) -> None:
    uri = f"file://{tmp_path}/place"
    with pytest.raises(ZeroDivisionError), spark_wal.checkpoint_service(uri, listen="127.0.0.1:0"):
        _ = 1 / 0
    with spark_wal.checkpoint_service(uri, listen="127.0.0.1:0"):
        pass


@pytest.mark.parametrize(
    ("version", "package"),
    [
        ("4.3.0", ".checkpointing"),
        ("4.1.1", ".checkpointing"),
        ("4.0.5", ""),
        ("3.5.9", ""),
        ("4.1.0rc1", ".checkpointing"),
    ],
)
def test_the_file_manager_has_another_name_in_older_spark(version: str, package: str) -> None:
    prefix = "org.apache.spark.sql.execution.streaming"
    assert file_manager(version) == f"{prefix}{package}.FileSystemBasedCheckpointFileManager"


def test_the_settings() -> None:
    settings = spark_conf("webhdfs://h:1/x")
    assert settings["spark.hadoop.dfs.http.client.retry.policy.enabled"] == "true"
    assert settings == spark_conf()
    with pytest.raises(ConfigError):
        spark_conf("file:///x")


def test_several_gateways_have_one_name() -> None:
    settings = spark_conf("swebhdfs://ckpt/app", gateways=["gw1:9871", "gw2:9871"])
    dfs = {name.removeprefix("spark.hadoop.dfs."): value for name, value in settings.items()}
    assert dfs["nameservices"] == "ckpt"
    assert [dfs[f"namenode.https-address.ckpt.{key}"] for key in dfs["ha.namenodes.ckpt"].split(",")] == [
        "gw1:9871",
        "gw2:9871",
    ]
    assert dfs["client.failover.proxy.provider.ckpt"].endswith(".ConfiguredFailoverProxyProvider")
    for wrong in ("", "webhdfs://gw1:9870/app", "webhdfs:///app"):
        with pytest.raises(ConfigError, match="webhdfs://NAME/PATH"):
            spark_conf(wrong, gateways=["gw1:9870"])


def test_several_gateways_are_a_service_and_one_that_answers_is_enough(tmp_path: Path) -> None:
    """The cause: a pair could be had by hand-made settings only, and these knew no TLS and no tokens."""
    with socket.socket() as taken, socket.socket() as gateway:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        gateway.bind(("127.0.0.1", 0))
        gateway.listen()
        urls = [f"http://127.0.0.1:{each.getsockname()[1]}" for each in (taken, gateway)]
        with spark_wal.checkpoint_service(urls) as wal:
            assert (wal.location("a/b"), wal.address, wal.url) == ("webhdfs://ckpt/a/b", "ckpt", urls[0])
            assert wal.spark_conf() == spark_conf("webhdfs://ckpt/", gateways=urls) == spark_conf(gateways=urls)
        with spark_wal.checkpoint_service(urls, name="mine") as wal:
            assert wal.location("a") == "webhdfs://mine/a"
            assert wal.spark_conf()["spark.hadoop.dfs.ha.namenodes.mine"] == "g1,g2"
        with (
            pytest.raises(ConnectionError, match=rf"no gateway answers at {urls[0]} .*: start one"),
            spark_wal.checkpoint_service(urls[:1]),
        ):
            pass
    with pytest.raises(ConfigError, match="for several gateways"), spark_wal.checkpoint_service("mem:x", name="mine"):
        pass


def test_a_protected_pair_has_its_files_and_its_name(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    access = spark_wal.GatewayAccess(ca=authority.ca, token=spark_wal.Secret("hunter2hunter2"))
    urls = ["https://gw1:9871", "https://gw2:9871"]
    conf = spark_conf(gateways=urls, access=access, directory=str(tmp_path / "s"))
    assert conf["spark.hadoop.dfs.namenode.https-address.ckpt.g2"] == "gw2:9871"
    assert (tmp_path / "s" / "driver" / "ssl-client.xml").exists()
    assert b"ha-swebhdfs:ckpt" in (tmp_path / "s" / "driver" / "gateway.token").read_bytes()
    kept = spark_conf(gateways=urls, access=access)
    assert Path(kept["spark.driver.extraClassPath"]).is_dir(), "it stays as long as the program"
    assert CheckpointService.at(urls, access=access).spark_conf(str(tmp_path / "s")) == conf


@pytest.mark.parametrize(
    ("location", "gateways", "why"),
    [
        ("", ["gw1:9870"], "give the URLs of the gateways"),
        ("webhdfs://ckpt/a", ["gw1"], "expected http://HOST:PORT"),
        ("webhdfs://ckpt/a", ["https://gw1:9871"], "differ in TLS"),
        ("webhdfs://ckpt/a", "gw1:9870", "is a list of addresses"),
    ],
)
def test_places_that_do_not_fit_are_refused_in_a_sentence(location: str, gateways: list[str], why: str) -> None:
    """The cause: parts of addresses were unpacked and parsed as they came, and the ValueError was the answer."""
    with pytest.raises(ConfigError, match=why):
        spark_conf(location, gateways=gateways)


def test_access_without_a_place_is_refused() -> None:
    access = spark_wal.GatewayAccess(ca="ca.pem")
    with pytest.raises(ConfigError, match="for which gateway"):
        spark_conf(access=access)
    with pytest.raises(ConfigError, match="expected http://HOST:PORT"):
        spark_conf("swebhdfs://gw/a", access=access)
    assert spark_conf("swebhdfs://gw/a") == spark_conf(), "without protection it need not be known"


@pytest.mark.parametrize("version", ["4", "", "x.y", "4.", "Spark 4.0"])
def test_a_version_that_is_none_is_refused_in_a_sentence(version: str) -> None:
    """The cause: the version was unpacked without a look: "not enough values to unpack"."""
    with pytest.raises(ConfigError, match=r"expected a version of Spark such as 4\.0 or 4\.0\.1"):
        file_manager(version)


def test_an_address_to_listen_at_that_is_none_is_refused_in_a_sentence() -> None:
    with (
        pytest.raises(ConfigError, match="listen=: expected HOST:PORT, got 'nowhere'"),
        spark_wal.checkpoint_service("mem:x", listen="nowhere"),
    ):
        pass


def test_the_front_door_has_nothing_else() -> None:
    assert spark_wal.CheckpointService is not None
    with pytest.raises(AttributeError):
        _ = spark_wal.nothing


def test_a_protected_service_is_reached_with_what_it_is_told(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    shown = authority.server("gateway")
    protection = AccessConfig(tls=ServerTlsFiles(certificate=shown.cert, key=shown.key))
    access = spark_wal.GatewayAccess(ca=authority.ca)
    uri = f"file://{tmp_path}/place"
    with spark_wal.checkpoint_service(uri, listen="127.0.0.1:0", protection=protection, access=access) as wal:
        assert wal.location("a").startswith("swebhdfs://127.0.0.1:")
        trust = ssl.create_default_context(cafile=authority.ca)
        with urllib.request.urlopen(f"{wal.url}/health", context=trust) as reply:
            assert json.load(reply)["role"] == "owner"
        conf = wal.spark_conf()
        written = Path(conf["spark.driver.extraClassPath"])
        assert (written / "ssl-client.xml").exists()
        assert conf["spark.driver.extraJavaOptions"].startswith("-Dhttp.maxConnections=64")
        kept = wal.spark_conf(str(tmp_path / "kept"))
    assert not written.exists()
    assert (Path(kept["spark.driver.extraClassPath"]) / "ssl-client.xml").exists()
    with pytest.raises(ConfigError, match="its own"), spark_wal.checkpoint_service(wal.url, protection=protection):
        pass
