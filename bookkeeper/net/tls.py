"""How connections are encrypted: the settings of both sides. Files are PEM; nothing is read here.

TLS is negotiated in band: a client sends START_TLS in clear, the answer comes in clear, the next byte is TLS. A client
that is configured for it sends nothing else in clear and never goes on without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from bookkeeper.errors import ConfigError, require, require_range

RELOAD_S: Final = 300.0
"""Seconds between two looks for changed certificates."""

HANDSHAKE_S: Final = 10.0
"""Seconds a TLS handshake may take, START_TLS included."""

MODES: Final = ("required", "offered", "off")


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsConfig:
    """A client's side. With it every connection to a bookie is encrypted, or there is none."""

    ca: str
    """File of the certificate authorities that vouch for bookies; the system's own are not trusted."""

    cert: str | None = None
    """File of our certificate, followed by its chain, for bookies that ask for one."""

    key: str | None = None
    """File of its private key, without a password. Default: it is in ``cert``."""

    verify_host: bool = True
    """The bookie's certificate must be for the host that was connected to. Only turn it off where ``ca`` vouches
    for nobody but bookies that may stand in for each other."""

    identity: str | None = None
    """Instead of the host: what the certificate must name as a DNS name or a URI, for instance
    ``spiffe://example.org/bookie/{bookie_id}``; ``{bookie_id}`` stands for the bookie's id."""

    reload_interval_s: float = RELOAD_S
    """Changed files are used for new connections within this."""

    handshake_timeout_s: float = HANDSHAKE_S
    """START_TLS, handshake and authentication take no longer than this, or the connection is given up."""

    def __post_init__(self) -> None:
        require(bool(self.ca), "tls.ca is empty; it must name the file of the authorities that vouch for bookies")
        require(self.key is None or self.cert is not None, "tls.key needs tls.cert, the certificate of that key")
        require(
            self.identity is None or "{bookie_id}" in self.identity,
            f'tls.identity must contain {{bookie_id}}; "{self.identity}" does not',
        )
        require(self.identity is None or self.verify_host, "tls.identity needs tls.verify_host, which is switched off")
        require_range(self, "reload_interval_s", "handshake_timeout_s", above=0, table="tls.")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> TlsConfig | None:
        """``BK_TLS_CA``, ``BK_TLS_CERT``, ``BK_TLS_KEY``, ``BK_TLS_IDENTITY``, ``BK_TLS_VERIFY_HOST`` (1 or 0); None
        without any of them.

        Raises:
            ConfigError: a certificate without a CA, or a value that breaks a rule.
        """
        given = {name: environment.get(f"BK_TLS_{name.upper()}") or None for name in ("ca", "cert", "key", "identity")}
        if not any(given.values()):
            return None
        verify = environment.get("BK_TLS_VERIFY_HOST", "1")
        if verify not in ("0", "1"):
            raise ConfigError(f'BK_TLS_VERIFY_HOST in the environment must be 0 or 1, not "{verify}"')
        return client_tls(**given, verify_host=verify == "1")


def client_tls(
    *, ca: str | None, cert: str | None = None, key: str | None = None, identity: str | None = None, verify_host: bool
) -> TlsConfig | None:
    """What was given one by one, as settings; None if nothing was.

    Raises:
        ConfigError: a certificate without a CA.
    """
    if not (ca or cert or key or identity):
        return None
    if not ca:
        raise ConfigError("TLS needs the authorities that vouch for bookies: --tls-ca FILE, or BK_TLS_CA")
    return TlsConfig(ca=ca, cert=cert, key=key, identity=identity, verify_host=verify_host)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTls:
    """A bookie's side: its table ``[tls]``."""

    cert: str | None = None
    """File of the bookie's certificate, followed by its chain."""

    key: str | None = None
    """File of its private key, without a password, for nobody's eyes but its owner's. Default: it is in ``cert``."""

    client_ca: str | None = None
    """File of the authorities that vouch for clients. A client without a certificate of theirs is not served."""

    mode: str = "required"
    """``required``: a connection that does not begin with START_TLS hears one error and is closed. ``offered``:
    clients that ask for it are encrypted, others are served in clear. ``off``."""

    allow: tuple[str, ...] = ()
    """The principals that are served: the certificate's subject alternative name (URI, mail, DNS, address), or its
    common name where it has none. Empty: every one that ``client_ca`` vouches for."""

    roles: tuple[str, ...] = ()
    """The roles that are served, as Apache's BookieAuthZFactory reads them: the first of ``0:ROLE,...`` in the
    certificate's organisational unit. Empty: not looked at."""

    reload_interval_s: float = RELOAD_S
    """Changed files are used for new connections within this; those that stand stay."""

    handshake_timeout_s: float = HANDSHAKE_S
    """A connection that is not encrypted and authenticated by then is closed."""

    handshakes_max: int = 256
    """Handshakes in progress at a time; one more is closed."""

    def __post_init__(self) -> None:
        require(self.mode in MODES, f'tls.mode must be one of {", ".join(MODES)}, not "{self.mode}"')
        if self.mode == "off":
            return
        require(self.cert is not None, "tls.cert is missing; it must name the file of the bookie's certificate")
        rules = bool(self.allow or self.roles)
        require(
            not rules or self.client_ca is not None,
            "tls.allow and tls.roles need tls.client_ca, by which clients show who they are",
        )
        require_range(self, "reload_interval_s", "handshake_timeout_s", "handshakes_max", above=0, table="tls.")
