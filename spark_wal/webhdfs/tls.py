"""The gateway's certificates: read at the start, looked at again while it runs.

The files are read as a bookie's are (:class:`bookkeeper.real.FileTls`: X3, X4, X43). Each handshake takes the newest
set that could be read whole; connections that stand keep theirs (X6).
"""

from __future__ import annotations

import logging
import ssl
from dataclasses import dataclass

from bookkeeper import seams
from bookkeeper.auth import not_after
from bookkeeper.errors import ConfigError, require
from bookkeeper.real import FileTls

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """PEM files of the gateway's side."""

    certificate: str
    """The gateway's certificate, followed by its chain."""
    key: str
    """Its private key, without a password, for its owner's eyes only (X43)."""
    client_ca: str | None = None
    """Who vouches for clients; None: they are not asked for a certificate."""
    client_certificates: str = "required"
    """``required``: a client without one is not served. ``optional``: it may show a token instead."""

    def __post_init__(self) -> None:
        require(bool(self.certificate and self.key), "--tls-cert and --tls-key together")
        require(self.client_certificates in ("required", "optional"), "client certificates are required or optional")


class ServerCertificates:
    """What the listener shows, and asks for.

    Raises:
        ConfigError: the files cannot be read, do not belong together, or others may read the key.
    """

    def __init__(self, files: TlsFiles) -> None:
        self._tls = FileTls(
            seams.TlsFiles(
                server=True,
                cert=files.certificate,
                key=files.key,
                ca=files.client_ca,
                anonymous=files.client_certificates == "optional",
            )
        )
        self.context = self._tls.context
        """For the listener, for as long as it listens."""
        self.context.sni_callback = self._choose

    @property
    def not_after(self) -> float:
        """When the certificate ends, in seconds since 1970."""
        assert self._tls.certificate is not None
        return not_after(self._tls.certificate)

    def refresh(self) -> bool:
        """Look for changed files; whether there were any that are now in use. What cannot be read is not used."""
        try:
            changed = self._tls.refresh()
        except ConfigError as error:
            logger.warning("the changed certificate is not used, the old one stays: %s", error)
            return False
        if changed:
            logger.info("new certificates are in use")
        return changed

    def _choose(self, connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        """OpenSSL asks at every handshake, also of clients that name no host."""
        connection.context = self._tls.context
