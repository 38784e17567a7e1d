"""The gateway's certificates: it reads them at the start, and checks for changes while it runs.

The files are read like a bookie's (:class:`bookkeeper.real.FileTls`). Each handshake uses the newest complete set of
files. The context is never exchanged inside a handshake, because the handshake would keep the old set's rules. Open
connections keep their set, unless their certificate is revoked or its authority is removed.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from bookkeeper import seams
from bookkeeper.auth.certificate import not_after
from bookkeeper.auth.client_trust import ClientTrust
from bookkeeper.auth.revocations import Revocations
from bookkeeper.errors import ConfigError, in_words, require
from bookkeeper.real import FileTls, read_private

logger = logging.getLogger(__name__)

VERDICTS_MAX: Final = 4096
"""Of so many certificates it is remembered whether they would be refused, until the files change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTlsFiles:
    """The gateway's PEM files."""

    certificate: str
    """The gateway's certificate, followed by its chain."""
    key: str
    """The private key, without a password, readable by its owner only."""
    client_ca: str | None = None
    """The authorities that sign clients' certificates, and revocation lists. None: clients need no certificate."""
    crl: str | None = None
    """Revocation lists, if they are not in ``client_ca``: one for each authority of clients' certificates."""
    client_certificates: str = "required"
    """``required``: a client without a certificate is refused. ``optional``: it may show a token instead."""

    def __post_init__(self) -> None:
        require(bool(self.certificate and self.key), "--tls-cert and --tls-key must be given together")
        require(
            self.crl is None or self.client_ca is not None,
            "--tls-crl needs --client-ca: it lists revoked certificates of clients",
        )
        require(
            self.client_certificates in ("required", "optional"),
            f'client certificates must be required or optional, not "{self.client_certificates}"',
        )


@dataclass(frozen=True, slots=True)
class PemFiles:
    """What the files hold, for libraries that take no context of ssl."""

    certificate: bytes
    key: bytes = field(repr=False)
    client_ca: bytes | None


class ServerCertificates:
    """The certificate that the listener shows, and the client certificates that it asks for.

    Raises:
        ConfigError: the files cannot be read, do not belong together, or others may read the key.
        ModuleNotFoundError: there are revocation lists, and the package ``cryptography`` is not installed.
    """

    def __init__(self, files: ServerTlsFiles) -> None:
        self._files = files
        self._trusted = [path for path in (files.client_ca, files.crl) if path is not None]
        self._tls = FileTls(
            seams.TlsFiles(
                server=True,
                cert=files.certificate,
                key=files.key,
                ca=files.client_ca,
                crl=files.crl,
                anonymous=files.client_certificates == "optional",
            )
        )
        self.trust = self._read_trust(None)
        """By what clients are admitted now."""
        self._ever = self.trust
        """With every authority that was trusted since the start: when a client was admitted may not be known."""
        self._vouched: dict[tuple[bytes, tuple[bytes, ...]], bool] = {}
        self._pem: PemFiles | None = None

    @property
    def revocations(self) -> Revocations:
        """The lists of revoked certificates."""
        assert self.trust.revocations is not None  # a gateway does not start without what reads them
        return self.trust.revocations

    def refuses(self, certificate: bytes, now_s: float, chain: Sequence[bytes] = ()) -> bool:
        """Whether a client that was admitted at some time since the start would be refused now.

        Args:
            certificate: what it has shown (DER). now_s: seconds since 1970.
            chain: the authorities that it has shown with it.
        """
        try:
            if self.revocations.refuses(certificate, now_s):
                return True
        except ValueError:
            return True
        if self._ever.authorities <= self.trust.authorities:
            return False
        shown = (certificate, tuple(chain))
        if shown not in self._vouched:
            if len(self._vouched) >= VERDICTS_MAX:
                self._vouched.clear()
            trust = replace(self.trust, revocations=Revocations())
            self._vouched[shown] = trust.why_refused(certificate, self._ever, now_s, chain) is None
        return not self._vouched[shown]

    @property
    def context(self) -> ssl.SSLContext:
        """The TLS context for the next handshake."""
        return self._tls.context

    @property
    def not_after(self) -> float:
        """When the certificate ends, in seconds since 1970."""
        assert self._tls.certificate is not None
        return not_after(self._tls.certificate)

    def pem(self) -> PemFiles:
        """What the newest context was made of: a certificate with its own key, never with that of another one.

        Raises:
            OSError: a file cannot be read. ConfigError: the files change just now, and none was read before.
        """
        client_ca = self._files.client_ca
        found = PemFiles(
            _bytes_of(self._files.certificate),
            read_private(self._files.key),
            None if client_ca is None else _bytes_of(client_ca),
        )
        if self._tls.is_current:  # else the context is of other files, or these are of two generations
            self._pem = found
        if self._pem is None:
            raise ConfigError("the TLS files have changed while they were read: start again")
        return self._pem

    def refresh(self) -> bool:
        """Read the files again if they have changed, and return whether changed ones are now in use.

        Files that cannot be read are not used; the old ones stay in use.
        """
        try:
            changed = self._tls.refresh()
        except ConfigError as error:
            logger.warning(
                "the changed TLS files cannot be used, so the old ones stay in use until the files are corrected: %s",
                error,
            )
            return False
        if changed:
            logger.info("the TLS files have changed: new connections use them")
            try:
                self.trust = self._read_trust(self.trust)
            except ModuleNotFoundError as error:
                self._cannot_read(error)
            self._ever = replace(self._ever, authorities=self._ever.authorities | self.trust.authorities)
            self._vouched.clear()
        return changed

    def _read_trust(self, before: ClientTrust | None) -> ClientTrust:
        """Read authorities and lists for open connections. OpenSSL has read them for new ones. What was revoked stays
        so if the lists cannot be read."""
        text, kept = "", Revocations(unreadable=True) if before is None else before.revocations
        try:
            for path in self._trusted:
                with open(path, encoding="ascii", errors="replace") as file:
                    text += file.read() + "\n"
        except OSError as error:
            self._cannot_read(error)
            return before or ClientTrust(revocations=kept)
        try:
            kept = Revocations.parse(text)
        except ValueError as error:
            self._cannot_read(error)
        return replace(ClientTrust.parse(text), revocations=kept)

    def _cannot_read(self, error: Exception) -> None:
        names = ", ".join(self._trusted)
        logger.warning(
            "%s cannot be read, so open connections with revoked certificates stay open: %s", names, in_words(error)
        )


def _bytes_of(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
