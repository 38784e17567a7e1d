"""Settings of the console. Data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from bookkeeper.errors import ConfigError, require, require_range
from bookkeeper.ids import Address, is_loopback

ACTIONS: Final[Mapping[str, str]] = {
    "repair": "repair ledgers",
    "drain": "move the ledgers of a bookie to others",
    "read-only": "make a bookie read-only, and writable again",
    "purge": "remove deleted ledgers for ever",
}
"""What pages may change, by the word that switches it on."""

ALL: Final = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleConfig:
    """Where the console is served, who may see it, and what it may change. Nothing by default."""

    listen: str = "127.0.0.1:9880"
    """HOST:PORT. Without TLS a loopback address."""
    token_file: str | None = None
    """The file that ``bk gateway token`` writes. With it every page needs a token of it, which a browser asks for as a
    password; None: whoever reaches the address sees the pages, and nobody changes anything."""
    actions: tuple[str, ...] = ()
    """What pages may change, by the words of :data:`ACTIONS`; ``all`` stands for every one."""
    tls_cert: str | None = None
    """PEM file with the console's certificate and chain. With it the console speaks TLS only."""
    tls_key: str | None = None
    """PEM file with the private key; None: it is in the file of the certificate."""
    refresh_s: float = 5.0
    """Seconds after which bookies and autorecovery are asked again, while somebody looks."""
    ledgers_refresh_s: float = 5.0
    """The same for the metadata of all ledgers; it is longer where reading them takes more than a tenth of it."""
    idle_s: float = 300.0
    """Seconds without a request after which nothing is read any more."""

    def __post_init__(self) -> None:
        for word in self.actions:
            known = f"{', '.join(ACTIONS)}, {ALL}"
            require(word in ACTIONS or word == ALL, f"there is no action {word}; there are {known}")
        try:
            address = Address.parse(self.listen)
        except ValueError as error:
            raise ConfigError(f"--listen must be HOST:PORT with a port up to 65535, not {self.listen!r}") from error
        require(self.tls_key is None or self.tls_cert is not None, "--listen-tls-key needs --listen-tls-cert")
        beyond = not is_loopback(address.host)
        require(
            not beyond or self.tls_cert is not None,
            f"--listen {self.listen}: pages and tokens would be sent in clear; give the console a certificate "
            "(--listen-tls-cert, --listen-tls-key), or a loopback address (127.0.0.1, ::1, localhost)",
        )
        require(
            not beyond or bool(self.token_file),
            f"--listen {self.listen} can be reached from other hosts: give --token-file, so that pages want a token; "
            "`bk gateway token NAME --token-file FILE` makes one",
        )
        require(
            not self.actions or bool(self.token_file),
            "--actions needs --token-file: whoever changes something shows a token; "
            "`bk gateway token NAME --token-file FILE` makes one",
        )
        require_range(self, "refresh_s", "ledgers_refresh_s", "idle_s", least=0.05)

    def allows(self, action: str) -> bool:
        """Whether an action is switched on."""
        return action in self.actions or ALL in self.actions
