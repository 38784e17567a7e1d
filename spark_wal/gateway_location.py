"""Where clients find a gateway, or several gateways of one namespace, and how Hadoop's client is told. Data.

A single gateway is known by its HOST:PORT. Several have one name, which is no host: Hadoop calls it a nameservice. Its
client asks them in their order, and asks the next one when a gateway stands by or cannot be reached.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from bookkeeper.amounts import counted
from bookkeeper.errors import ConfigError
from bookkeeper.ids import Address

SCHEMES: Final = {"http": False, "webhdfs": False, "https": True, "swebhdfs": True}
"""The schemes of a running gateway's URL, and whether they mean TLS."""

SEVERAL: Final = "ckpt"
"""The name of several gateways, if nobody gives another one."""

_FAILOVER: Final = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class GatewayLocation:
    """One gateway, or several with a name."""

    addresses: tuple[Address, ...]
    tls: bool
    name: str | None = None
    """The name of several gateways; None: there is one, and it has none."""

    def __post_init__(self) -> None:
        if self.name is None and len(self.addresses) != 1:
            raise ConfigError(f"{counted(len(self.addresses), 'gateway', 'needs', 'need')} one name")
        if self.name is not None and not is_name(self.name):
            raise ConfigError(
                f"{self.name!r} cannot be the name of several gateways: letters, digits, - and _ are allowed, and it "
                "is no host"
            )
        if len(set(self.addresses)) != len(self.addresses):
            raise ConfigError("a gateway is given twice")

    @classmethod
    def of(cls, urls: str | Sequence[str], name: str | None = None) -> GatewayLocation:
        """The place of a gateway's URL, or of several URLs. ``name`` names several; by default :data:`SEVERAL`.

        Raises:
            ConfigError: a URL is not ``http://HOST:PORT`` (or ``https``, ``webhdfs``, ``swebhdfs``), some mean TLS
                and some do not, or a single gateway is given a name.
        """
        if isinstance(urls, str):
            if name is not None:
                raise ConfigError(f"the name {name!r} is for several gateways, and one is given: {urls}")
            address, tls = _parse(urls)
            return cls((address,), tls)
        parsed = [_parse(url) for url in urls]
        kinds = {tls for _, tls in parsed}
        if len(kinds) != 1:
            raise ConfigError(
                f"the gateways of one namespace are reached all by TLS or all without, not {', '.join(urls)}"
                if parsed
                else "no gateway is given: expected http://HOST:PORT, ..."
            )
        return cls(tuple(address for address, _ in parsed), kinds.pop(), name or SEVERAL)

    @property
    def scheme(self) -> str:
        """The scheme of locations."""
        return "swebhdfs" if self.tls else "webhdfs"

    @property
    def authority(self) -> str:
        """What stands in a location where a host would: the name, or HOST:PORT."""
        return self.name or str(self.addresses[0])

    @property
    def url(self) -> str:
        """The (first) gateway's URL for browsers, curl and fsspec."""
        return f"{'https' if self.tls else 'http'}://{self.addresses[0]}"

    def conf(self) -> dict[str, str]:
        """What Hadoop's client must be told of the name."""
        if self.name is None:
            return {}
        each = {f"g{number}": str(address) for number, address in enumerate(self.addresses, 1)}
        protocol = "https" if self.tls else "http"
        hadoop, name = "spark.hadoop.dfs", self.name
        return {
            f"{hadoop}.nameservices": name,
            f"{hadoop}.ha.namenodes.{name}": ",".join(each),
            **{f"{hadoop}.namenode.{protocol}-address.{name}.{key}": address for key, address in each.items()},
            f"{hadoop}.client.failover.proxy.provider.{name}": _FAILOVER,
        }


def is_name(text: str) -> bool:
    """Whether this can be the name of several gateways. Nothing with a dot or a port can."""
    return _NAME.fullmatch(text) is not None


def _parse(url: str) -> tuple[Address, bool]:
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES or "@" in parts.netloc or parts.path.strip("/") or parts.query or parts.fragment:
        raise ConfigError(f"expected http://HOST:PORT, got {_shown(url)}")
    try:
        return Address.parse(parts.netloc), SCHEMES[parts.scheme]
    except ValueError as error:
        raise ConfigError(
            f"expected http://HOST:PORT, got {url!r}: the port is missing or none, for instance 9870"
        ) from error


def _shown(url: str) -> str:
    """A URL without what stands before an ``@``, which may be a password."""
    return repr(url if "@" not in url else f"***@{url.rpartition('@')[2]}")
