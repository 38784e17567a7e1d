"""Settings of the HTTP administration API. Data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from bookkeeper.errors import ConfigError, require
from bookkeeper.ids import Address, is_loopback

ACTIONS: Final[Mapping[str, str]] = {
    "delete-ledger": "delete ledgers",
    "collect-garbage": "look for deleted ledgers and compact entry logs",
    "compaction": "suspend and resume compaction",
    "read-only": "make the bookie read-only, and writable again",
    "switch-autorecovery": "switch autorecovery off and on for the whole cluster",
    "recover-bookie": "move the ledgers of a bookie to others",
    "trigger-audit": "have the auditor look now",
    "lost-bookie-delay": "change after how long a bookie counts as lost",
    "decommission": "take a bookie out of the cluster",
}
"""What routes may change, by the word that switches them on."""

ALL: Final = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpApiConfig:
    """Where the API is served, and what it may change. Nothing is served by default."""

    listen: str = ""
    """HOST:PORT of the API. Without TLS a loopback address, for tokens are sent in clear then. Empty: it is off."""

    token_file: str | None = None
    """The file that ``bk gateway token`` writes. All but what tells of this bookie's health needs a token of it."""

    actions: tuple[str, ...] = ()
    """Which routes that change something are on, by the words of :data:`ACTIONS`; ``all`` stands for every one."""

    tls_cert: str | None = None
    """PEM file with its certificate and chain. With it the API speaks TLS only, and may be served to other hosts."""

    tls_key: str | None = None
    """PEM file with the private key; None: it is in the file of the certificate."""

    def __post_init__(self) -> None:
        for word in self.actions:
            known = f"{', '.join(ACTIONS)}, {ALL}"
            require(word in ACTIONS or word == ALL, f"http_api: there is no action {word}; there are {known}")
        if not self.listen:
            given = self.token_file or self.actions or self.tls_cert or self.tls_key
            require(not given, "http_api needs listen: the HOST:PORT at which it serves")
            return
        try:
            address = Address.parse(self.listen)
        except ValueError as error:
            raise ConfigError(
                f"http_api.listen must be HOST:PORT with a port up to 65535, not {self.listen!r}"
            ) from error
        require(self.tls_key is None or self.tls_cert is not None, "http_api.tls_key needs tls_cert")
        require(
            is_loopback(address.host) or self.tls_cert is not None,
            f"http_api.listen {self.listen}: tokens would be sent in clear; give it a certificate (tls_cert, tls_key), "
            "or a loopback address (127.0.0.1, ::1, localhost)",
        )
        require(
            bool(self.token_file),
            "http_api needs token_file: `bk gateway token NAME --token-file FILE` makes a token and its file",
        )

    def allows(self, action: str) -> bool:
        """Whether routes of this action are on."""
        return action in self.actions or ALL in self.actions


def http_api_options(
    listen: object, token_file: object, actions: object, tls_cert: object = None, tls_key: object = None
) -> dict[str, object]:
    """The table of settings that options of a command line make; what is None was not given."""
    given: dict[str, object] = {
        "listen": listen,
        "token_file": token_file,
        "tls_cert": tls_cert,
        "tls_key": tls_key,
    }
    if isinstance(actions, str):
        given["actions"] = [word.strip() for word in actions.split(",")]
    return {name: value for name, value in given.items() if value is not None}
