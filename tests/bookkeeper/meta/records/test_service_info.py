from __future__ import annotations

from typing import Any

import pytest

from bookkeeper.errors import MetadataFormatError
from bookkeeper.ids import Address, BookieId
from bookkeeper.meta.records.service_info import Endpoint, ServiceInfo, decode, encode
from tests.bookkeeper.meta.services import load


@pytest.mark.parametrize("item", load("cookies.json")["service_infos"], ids=lambda item: item["bookie_id"])
def test_registrations_of_java_are_read_and_written_as_they_were(item: dict[str, Any]) -> None:
    data = bytes.fromhex(item["hex"])
    info = decode(data)
    assert encode(info) == data
    assert info.address(item["bookie_id"]) == Address.parse(item["bookie_id"])
    assert list(info.endpoints[0].extensions) == item["decoded"]["endpoints"][0].get("extensions", [])


def test_a_plain_bookie_publishes_javas_sample() -> None:
    sample = "32220a06626f6f6b696510ed181a093132372e302e302e31220a626f6f6b69652d727063"
    assert encode(ServiceInfo.bookie(Address("127.0.0.1", 3181))).hex() == sample


def test_empty_bytes_mean_the_id_is_the_address() -> None:
    assert decode(b"").address(BookieId("h:5")) == Address("h", 5)
    with pytest.raises(MetadataFormatError, match="bookie-rpc"):
        decode(b"").address(BookieId("name"))


def test_the_bookie_endpoint_is_found_among_others() -> None:
    info = ServiceInfo.bookie(Address("h", 1), tls=True, http=Address("h", 2))
    assert info.endpoints[1] == Endpoint("httpserver", "h", 2, "http")
    assert decode(encode(info)) == info
    assert ServiceInfo(info.endpoints[::-1]).address(BookieId("x")) == Address("h", 1)


def test_what_is_no_service_info_is_refused() -> None:
    with pytest.raises(MetadataFormatError):
        decode(b"\x32\xff")
    with pytest.raises(MetadataFormatError):
        encode(ServiceInfo.bookie(Address("h", 2**40)))


@pytest.mark.rule("X29")
@pytest.mark.parametrize("host", ["a\nb", "\x1b[31mred", "\u202etxen", "h" * 256])
def test_a_host_that_cannot_be_one_is_refused_and_shown_harmlessly(host: str) -> None:
    with pytest.raises(MetadataFormatError, match="names a host that cannot be one") as refused:
        decode(encode(ServiceInfo.bookie(Address(host, 3181))))
    assert str(refused.value).isprintable()


@pytest.mark.parametrize("port", [-1, 65_536])
def test_a_port_that_cannot_be_one_is_refused(port: int) -> None:
    with pytest.raises(MetadataFormatError, match=f"with port {port}"):
        decode(encode(ServiceInfo.bookie(Address("h", port))))
