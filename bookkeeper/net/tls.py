"""The TLS settings of clients and bookies. Files are PEM; this module does not read them.

TLS begins inside the protocol: the client sends START_TLS, the bookie answers, both unencrypted, and the next byte is
TLS. A client with these settings sends nothing else unencrypted, and never continues without TLS.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from bookkeeper.errors import ConfigError, require, require_range

RELOAD_S: Final = 300.0
"""Seconds between two checks for changed certificates."""

HANDSHAKE_S: Final = 10.0
"""The most seconds of a TLS handshake, START_TLS included."""

MODES: Final = ("required", "offered", "off")


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsConfig:
    """A client's TLS settings. With them every connection to a bookie is encrypted."""

    ca: str
    """File of the certificate authorities that sign bookies' certificates. The system's authorities are not trusted."""

    cert: str | None = None
    """File of the client's certificate, followed by its chain, for bookies that ask for one."""

    key: str | None = None
    """File of the certificate's private key, without a password. Default: the key is in ``cert``."""

    insecure_any_host: bool = False
    """Accept a bookie's certificate for whatever host it is: then every holder of a certificate of ``ca`` can pose as
    any bookie. Only for an authority that signs certificates for nothing but bookies that may replace each other."""

    identity: str | None = None
    """The DNS name or URI that the certificate must have instead of the host, for instance
    ``spiffe://example.org/bookie/{bookie_id}``. ``{bookie_id}`` stands for the bookie's id."""

    reload_interval_s: float = RELOAD_S
    """Seconds within which new connections use changed files."""

    handshake_timeout_s: float = HANDSHAKE_S
    """Seconds that START_TLS, handshake and authentication may take together. Then the connection fails."""

    def __post_init__(self) -> None:
        require(bool(self.ca), "tls.ca is empty; it must name the file of the authorities that vouch for bookies")
        require(self.key is None or self.cert is not None, "tls.key needs tls.cert, the certificate of that key")
        require(
            self.identity is None or "{bookie_id}" in self.identity,
            f'tls.identity must contain {{bookie_id}}; "{self.identity}" does not',
        )
        require(
            self.identity is None or not self.insecure_any_host,
            "tls.identity names whose the certificate must be, and tls.insecure_any_host takes anybody's: give one",
        )
        require_range(self, "reload_interval_s", "handshake_timeout_s", above=0, table="tls.")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> TlsConfig | None:
        """Settings from ``BK_TLS_CA``, ``BK_TLS_CERT``, ``BK_TLS_KEY``, ``BK_TLS_IDENTITY`` and
        ``BK_TLS_INSECURE_ANY_HOST`` (1 or 0). None if none of them is set.

        Raises:
            ConfigError: there is a certificate but no CA, or a value is not allowed.
        """
        given = {name: environment.get(f"BK_TLS_{name.upper()}") or None for name in ("ca", "cert", "key", "identity")}
        if not any(given.values()):
            return None
        if "BK_TLS_VERIFY_HOST" in environment:
            raise ConfigError("BK_TLS_VERIFY_HOST is no setting any more: say BK_TLS_INSECURE_ANY_HOST=1 instead of 0")
        any_host = environment.get("BK_TLS_INSECURE_ANY_HOST", "0")
        if any_host not in ("0", "1"):
            raise ConfigError(f'BK_TLS_INSECURE_ANY_HOST in the environment must be 0 or 1, not "{any_host}"')
        return client_tls(**given, insecure_any_host=any_host == "1")


def client_tls(
    *,
    ca: str | None,
    cert: str | None = None,
    key: str | None = None,
    identity: str | None = None,
    insecure_any_host: bool = False,
) -> TlsConfig | None:
    """Settings from single values; None if none was given.

    Raises:
        ConfigError: there is a certificate but no CA.
    """
    if not (ca or cert or key or identity):
        return None
    if not ca:
        raise ConfigError(
            "TLS needs the authorities that sign bookies' certificates: give --tls-ca FILE, or set BK_TLS_CA"
        )
    return TlsConfig(ca=ca, cert=cert, key=key, identity=identity, insecure_any_host=insecure_any_host)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTls:
    """A bookie's TLS settings: its table ``[tls]``."""

    cert: str | None = None
    """File of the bookie's certificate, followed by its chain."""

    key: str | None = None
    """File of the private key, without a password. Only its owner may read it. Default: the key is in ``cert``."""

    client_ca: str | None = None
    """File of the authorities that sign clients' certificates. A client without such a certificate is refused."""

    mode: str = "required"
    """``required``: a connection that does not begin with START_TLS gets one error and is closed. ``offered``: clients
    that send START_TLS are encrypted, others are served unencrypted. ``off``: there is no TLS."""

    allow: tuple[str, ...] = ()
    """The principals that are served. A principal is the certificate's subject alternative name (URI, mail, DNS,
    address), or its common name if it has none. Empty: all certificates that ``client_ca`` has signed."""

    roles: tuple[str, ...] = ()
    """The roles that are served. A role is, as for Apache's BookieAuthZFactory, the first of ``0:ROLE,...`` in the
    certificate's organisational unit. Empty: roles are not checked."""

    reload_interval_s: float = RELOAD_S
    """Seconds within which new connections use changed files. Open connections stay."""

    handshake_timeout_s: float = HANDSHAKE_S
    """Seconds after which a connection is closed if it is not encrypted and authenticated."""

    handshakes_max: int = 256
    """TLS handshakes at a time. One more is closed."""

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
