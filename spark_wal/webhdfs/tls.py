"""The gateway's certificates: read at the start, looked at again while it runs.

Each handshake takes the newest set that could be read whole; connections that stand keep theirs (X6). TLS 1.2 is the
least that is spoken (X3). Client certificates are verified against ``client_ca`` and nothing else (X4).
"""

from __future__ import annotations

import logging
import os
import ssl
from dataclasses import dataclass
from typing import Final

from bookkeeper.errors import ConfigError, require
from spark_wal.der import CertificateFormatError, certificates_of, not_after_ms
from spark_wal.secret import read_private

logger = logging.getLogger(__name__)

HANDSHAKE_S: Final = 10.0
"""A handshake that takes longer is given up (X7)."""

EXPIRY_WARNING_MS: Final = 14 * 24 * 3600 * 1000
"""A certificate that ends sooner is warned of (X6)."""


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
        self._files = files
        self._seen = self._stamps()
        self._newest = self._load()
        self.not_after_ms = _end_of(files.certificate)
        """When the certificate ends."""
        self.context = self._newest
        """For the listener, for as long as it listens."""
        self.context.sni_callback = self._choose

    def refresh(self) -> bool:
        """Look for changed files; whether there were any that are now in use. What cannot be read is not used."""
        stamps = self._stamps()
        if stamps == self._seen:
            return False
        try:
            newest, not_after_ms = self._load(), _end_of(self._files.certificate)
        except ConfigError as error:
            logger.warning("the changed certificate is not used, the old one stays: %s", error)
            return False
        self._seen, self._newest, self.not_after_ms = stamps, newest, not_after_ms
        logger.info("new certificates are in use")
        return True

    def _choose(self, connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        """OpenSSL asks at every handshake, also of clients that name no host."""
        connection.context = self._newest

    def _stamps(self) -> list[tuple[int, int, int] | None]:
        return [_stamp(path) for path in (self._files.certificate, self._files.key, self._files.client_ca) if path]

    def _load(self) -> ssl.SSLContext:
        files = self._files
        try:
            read_private(files.key)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
            context.load_cert_chain(files.certificate, files.key, password=_no_password)
            if files.client_ca is not None:
                optional = files.client_certificates == "optional"
                context.verify_mode = ssl.CERT_OPTIONAL if optional else ssl.CERT_REQUIRED
                context.load_verify_locations(cafile=files.client_ca)
                context.options |= ssl.OP_NO_TICKET  # a ticket would outlive the certificate's authority (X3)
                context.num_tickets = 0
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            told = f"{files.certificate}, {files.key}" + (f", {files.client_ca}" if files.client_ca else "")
            raise ConfigError(f"the TLS files cannot be used ({told}): {error}") from error
        return context


def _no_password() -> str:
    raise ValueError("the private key has a password: a server has nobody to ask for it")


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _end_of(path: str) -> int:
    try:
        with open(path, "rb") as file:
            return not_after_ms(certificates_of(file.read())[0])
    except (OSError, CertificateFormatError) as error:
        raise ConfigError(f"{path} holds no certificate that can be read: {error}") from error
