"""What ``bk standalone`` is to run (data)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bookkeeper.bookie.config import config_from
from bookkeeper.errors import ConfigError, require
from bookkeeper.meta.service_uri import sqlite_uri

HOST: Final = "127.0.0.1"
"""Where everything of it listens."""
PORT_MAX: Final = 65535


@dataclass(frozen=True, slots=True)
class StandalonePlan:
    """What to run. With ``webhdfs_port`` None there is no gateway."""

    directory: Path
    bookies: int
    webhdfs_port: int | None
    command_group: str
    tls: Mapping[str, str] = field(default_factory=dict)
    """``cert``, ``key``, ``client_ca`` of the bookies, and ``ca``, which the gateway trusts. Empty: no TLS."""
    autorecovery: bool = True
    """Repair under-replicated ledgers, in a process of its own."""
    gateway_wanted: bool = False
    """Whether the user has asked for the gateway. Then nothing is started if it cannot start."""
    console_port: int | None = None
    """Where the console is served on this machine; None: nowhere."""
    http_api_port: int | None = None
    """Where the first bookie serves the HTTP API on this machine, and the others behind it; None: nowhere."""
    http_api: Mapping[str, object] = field(default_factory=dict)
    """``token_file`` and ``actions`` of the bookies' table ``[http_api]``."""

    def __post_init__(self) -> None:
        if self.tls and not {"cert", "ca"} <= self.tls.keys():
            raise ConfigError(
                "TLS needs both --tls-cert (the bookies' certificate) and --tls-ca (the authority that vouches for it)"
            )
        if self.http_api_port is None:
            require(not self.http_api, "--http-token-file and --http-actions need --http-api")
            return
        last = self.http_api_port + self.bookies - 1
        require(last <= PORT_MAX, f"--http-api: the last bookie would serve at port {last}, and there is none")
        for name in self.http_api_ports:
            config_from({"metadata_uri": self.metadata, "directory": ".", "http_api": self.http_api_of(name)})

    @property
    def bookies_tls(self) -> Mapping[str, str]:
        """The bookies' table ``[tls]``."""
        return {name: file for name, file in self.tls.items() if name != "ca"}

    @property
    def clients_tls(self) -> Mapping[str, str]:
        """The TLS settings for the environment of clients."""
        shown = ("ca", "cert", "key") if "client_ca" in self.tls else ("ca",)
        return {f"BK_TLS_{name.upper()}": self.tls[name] for name in shown if name in self.tls}

    @property
    def metadata(self) -> str:
        return sqlite_uri(f"{self.directory}/metadata.db")

    @property
    def http_api_ports(self) -> dict[str, int]:
        """The bookies that serve the HTTP API, and their ports."""
        if self.http_api_port is None:
            return {}
        return {f"b{number + 1}": self.http_api_port + number for number in range(self.bookies)}

    def http_api_of(self, bookie: str) -> dict[str, object]:
        """The bookie's table ``[http_api]``."""
        return {"listen": f"{HOST}:{self.http_api_ports[bookie]}", **self.http_api}
