from __future__ import annotations

import pytest

from bookkeeper.errors import ConfigError
from bookkeeper.ids import Address
from spark_wal.gateway_location import GatewayLocation


def test_one_gateway_is_known_by_its_address() -> None:
    for url, scheme, again in (
        ("http://gw:9870", "webhdfs", "http://gw:9870"),
        ("webhdfs://gw:9870/", "webhdfs", "http://gw:9870"),
        ("https://[::1]:9871", "swebhdfs", "https://[::1]:9871"),
    ):
        place = GatewayLocation.of(url)
        assert (place.scheme, place.url, place.name) == (scheme, again, None)
        assert place.authority == again.partition("://")[2]
        assert place.conf() == {}


def test_several_gateways_are_known_by_a_name() -> None:
    place = GatewayLocation.of(["https://gw1:9871", "swebhdfs://gw2:9871"])
    assert place.addresses == (Address("gw1", 9871), Address("gw2", 9871))
    assert (place.scheme, place.authority, place.url) == ("swebhdfs", "ckpt", "https://gw1:9871")
    assert GatewayLocation.of(["http://gw1:1"], "other").conf() == {
        "spark.hadoop.dfs.nameservices": "other",
        "spark.hadoop.dfs.ha.namenodes.other": "g1",
        "spark.hadoop.dfs.namenode.http-address.other.g1": "gw1:1",
        "spark.hadoop.dfs.client.failover.proxy.provider.other": (
            "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
        ),
    }


@pytest.mark.parametrize(
    "url", ["", "gw:1", "ftp://gw:1", "http://gw", "http://gw:x", "http://:1", "http://gw:1/path", "http://gw:1?q=1"]
)
def test_what_is_no_url_of_a_gateway_is_refused(url: str) -> None:
    """A path was dropped without a word: the checkpoint lay elsewhere than the address said."""
    for given in (url, [url]):
        with pytest.raises(ConfigError, match="expected http://HOST:PORT"):
            GatewayLocation.of(given)


def test_a_password_in_a_url_is_not_shown() -> None:
    with pytest.raises(ConfigError) as refused:
        GatewayLocation.of("http://me:hunter2@gw:1")
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("urls", "name", "why"),
    [
        ([], None, "no gateway is given"),
        (["http://a:1", "https://b:1"], None, "all by TLS or all without"),
        (["http://a:1", "http://a:1"], None, "given twice"),
        (["http://a:1", "http://b:1"], "a.b", "cannot be the name of several gateways"),
        (["http://a:1", "http://b:1"], "a:1", "cannot be the name of several gateways"),
        ("http://a:1", "name", "for several gateways, and one is given"),
    ],
)
def test_what_does_not_fit_together_is_refused(urls: str | list[str], name: str | None, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        GatewayLocation.of(urls, name)
