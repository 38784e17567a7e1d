from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bookkeeper.errors import ConfigError
from bookkeeper.ids import Address
from bookkeeper.secret import Secret
from examples.certificates import Authority
from spark_wal.gateway_location import GatewayLocation
from spark_wal.hadoop_tokens import password_of
from spark_wal.spark_access import GatewayAccess, SparkAccess, write_settings

GATEWAY = Address("127.0.0.1", 9871)
TOKEN = Secret("hunter2hunter2")


def write(
    access: GatewayAccess,
    directory: Path,
    *,
    tls: bool = True,
    version: tuple[int, int] = (4, 3),
    at: Address = GATEWAY,
) -> SparkAccess:
    return write_settings(access, GatewayLocation((at,), tls), directory, spark_version=version)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "ca")


def test_tls_is_a_trust_store_and_a_file_on_the_class_path(authority: Authority, tmp_path: Path) -> None:
    told = write(GatewayAccess(ca=authority.ca), tmp_path / "s")
    shipped, driver = tmp_path / "s" / "shipped", tmp_path / "s" / "driver"
    assert told.conf["spark.files"].split(",") == [str(shipped / n) for n in ("gateway-ca.p12", "ssl-client.xml")]
    assert told.conf["spark.driver.extraClassPath"] == str(driver)
    assert told.conf["spark.executor.extraClassPath"] == "."
    assert f"<value>{shipped}/gateway-ca.p12</value>" in (driver / "ssl-client.xml").read_text()
    assert "<value>gateway-ca.p12</value>" in (shipped / "ssl-client.xml").read_text()
    assert not told.driver_options


@pytest.mark.rule("X43", "X56")
def test_secrets_are_in_private_files_and_not_in_settings(authority: Authority, tmp_path: Path) -> None:
    client = authority.client()
    access = GatewayAccess(ca=authority.ca, certificate=client.cert, key=client.key, token=TOKEN, client_id="alice")
    told = write(access, tmp_path / "s")
    assert told.conf["spark.hadoop.hadoop.ssl.require.client.cert"] == "true"
    assert TOKEN.reveal() not in str(told)
    assert TOKEN.reveal() in (tmp_path / "s" / "driver" / "__spark_hadoop_conf__.xml").read_text()
    for path in (tmp_path / "s").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path
    assert "credential" in told.conf["spark.redaction.regex"]


def test_oauth2_trusts_through_the_jvm_which_keeps_the_public_authorities(authority: Authority, tmp_path: Path) -> None:
    told = write(GatewayAccess(ca=authority.ca, token=TOKEN, client_id="alice"), tmp_path / "s")
    assert told.executor_options == ["-Djavax.net.ssl.trustStore=jvm-ca.p12"]
    assert told.conf["spark.hadoop.dfs.webhdfs.oauth2.refresh.url"] == "https://127.0.0.1:9871/oauth2/token"
    shipped = tmp_path / "s" / "shipped"
    assert (shipped / "jvm-ca.p12").stat().st_size >= (shipped / "gateway-ca.p12").stat().st_size
    with pytest.raises(ConfigError, match=r"Spark 3\.5"):
        write(GatewayAccess(token=TOKEN, client_id="alice"), tmp_path / "t", version=(3, 5))


def test_only_who_needs_stores_needs_the_library(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    write(GatewayAccess(token=TOKEN), tmp_path / "s")
    with pytest.raises(ConfigError, match=r"pip install '\.\[spark\]' in a checkout"):
        write(GatewayAccess(ca=authority.ca), tmp_path / "t")


def test_a_token_is_bound_to_the_addresses_of_the_gateway(tmp_path: Path) -> None:
    told = write(GatewayAccess(token=TOKEN), tmp_path / "s", at=Address("localhost", 9871))
    given = told.conf["spark.executorEnv.HADOOP_TOKEN"]
    assert password_of(given) == TOKEN.reveal()
    (option,) = told.driver_options
    data = Path(option.removeprefix("-Dhadoop.token.files=")).read_bytes()
    assert b"127.0.0.1:9871" in data
    assert b"SWEBHDFS delegation" in data
    with pytest.raises(ConfigError, match="has no address here"):
        write(GatewayAccess(token=TOKEN), tmp_path / "t", at=Address("no-such-host.invalid", 1))


def test_a_token_of_several_gateways_is_bound_to_their_name(tmp_path: Path) -> None:
    pair = GatewayLocation((Address("gw1.invalid", 1), Address("gw2.invalid", 2)), tls=True, name="ckpt")
    told = write_settings(GatewayAccess(token=TOKEN), pair, tmp_path / "s", spark_version=(4, 3))
    assert password_of(told.conf["spark.executorEnv.HADOOP_TOKEN"]) == TOKEN.reveal()
    assert b"ha-swebhdfs:ckpt" in (tmp_path / "s" / "driver" / "gateway.token").read_bytes()
    with pytest.raises(ConfigError, match="at one address only"):
        access = GatewayAccess(token=TOKEN, client_id="alice")
        write_settings(access, pair, tmp_path / "t", spark_version=(4, 3))
    unprotected = GatewayLocation((Address("127.0.0.1", 1), Address("gw2.invalid", 2)), tls=False, name="ckpt")
    with pytest.raises(ConfigError, match="without TLS: give the address as https://gw2"):
        write_settings(GatewayAccess(token=TOKEN), unprotected, tmp_path / "t", spark_version=(4, 3))


def test_what_does_not_go_together_is_refused(authority: Authority, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="https"):
        write(GatewayAccess(ca=authority.ca), tmp_path / "s", tls=False)
    with pytest.raises(ConfigError, match="client_id"):
        GatewayAccess(client_id="alice")
    with pytest.raises(ConfigError, match="together with a certificate"):
        GatewayAccess(key="k")
    with pytest.raises(ConfigError, match="PEM"):
        write(GatewayAccess(ca=authority.password_file), tmp_path / "s")
    Path(authority.client().key).chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        write(GatewayAccess(certificate=authority.ca, key=f"{authority.directory}/client.key"), tmp_path / "s")


@pytest.mark.rule("X43")
def test_a_directory_that_others_may_write_into_is_refused(authority: Authority, tmp_path: Path) -> None:
    """Whoever may exchange the trust store chooses whom Spark trusts."""
    access = GatewayAccess(ca=authority.ca)
    for name in ("", "driver", "shipped"):
        place = tmp_path / f"open-{name}"
        (place / name).mkdir(parents=True)
        (place / name).chmod(0o777)
        with pytest.raises(ConfigError, match="chmod 700"):
            write(access, place)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / "shipped").symlink_to(elsewhere)
    with pytest.raises(ConfigError, match="must belong to the user who runs this"):
        write(access, linked)
    assert list(elsewhere.iterdir()) == []


@pytest.mark.rule("X56")
def test_what_other_settings_left_is_neither_shipped_nor_believed(authority: Authority, tmp_path: Path) -> None:
    place, shown = tmp_path / "s", authority.client()
    write(GatewayAccess(ca=authority.ca, certificate=shown.cert, key=shown.key), place)
    assert (place / "shipped" / "gateway-client.p12").exists()
    (place / "shipped" / "notes").write_text("of somebody")
    told = write(GatewayAccess(ca=authority.ca), place)
    assert "gateway-client.p12" not in told.conf["spark.files"]
    assert "notes" not in told.conf["spark.files"]
    assert not (place / "shipped" / "gateway-client.p12").exists()
    write(GatewayAccess(token=TOKEN, client_id="alice"), place)
    assert (place / "driver" / "__spark_hadoop_conf__.xml").exists()
    told = write(GatewayAccess(), place)
    assert "spark.files" not in told.conf
    assert list((place / "driver").iterdir()) == []
    assert [path.name for path in (place / "shipped").iterdir()] == ["notes"]


@pytest.mark.rule("X28")
def test_a_token_goes_to_another_host_by_tls_only(tmp_path: Path) -> None:
    far = Address("10.0.0.1", 9870)
    for access in (GatewayAccess(token=TOKEN), GatewayAccess(token=TOKEN, client_id="alice")):
        with pytest.raises(ConfigError, match="without TLS"):
            write(access, tmp_path / "s", tls=False, at=far)
        write(access, tmp_path / "s", tls=False)
        write(access, tmp_path / "s", at=far)


@pytest.mark.parametrize("name", ["a b", "a,b", "a:b", "a'b", "a\nb"])
def test_a_path_that_would_be_several_options_is_refused(authority: Authority, tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="cannot stand in Java's options"):
        write(GatewayAccess(ca=authority.ca), tmp_path / name)
    assert not (tmp_path / name).exists()


@pytest.mark.rule("X56")
def test_a_token_that_executors_have_in_a_file_is_in_no_environment(tmp_path: Path) -> None:
    """Cause: it was in the environment of executors, and so in the command line of Spark's launcher."""
    told = write(GatewayAccess(token=TOKEN, executor_token_file="/etc/spark/gateway.token"), tmp_path / "s")
    assert told.executor_options == ["-Dhadoop.token.files=/etc/spark/gateway.token"]
    assert not any("HADOOP_TOKEN" in name for name in told.conf)
    assert not any(TOKEN.reveal() in text for text in (*told.conf.values(), *told.executor_options))
    assert (tmp_path / "s" / "driver" / "gateway.token").stat().st_mode & 0o077 == 0
    for wrong in ("gateway.token", "/etc/a b", "/etc/a,b"):
        with pytest.raises(ConfigError, match="absolute path that can stand in Java's options"):
            GatewayAccess(token=TOKEN, executor_token_file=wrong)
    with pytest.raises(ConfigError, match="without client_id"):
        GatewayAccess(token=TOKEN, client_id="etl", executor_token_file="/etc/spark/gateway.token")
