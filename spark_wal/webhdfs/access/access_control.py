"""Who may reach the gateway: its listener's certificates and tokens, and that files which change are noticed."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from bookkeeper.auth.certificate import EXPIRES_SOON_S
from bookkeeper.errors import ConfigError, in_words, require
from bookkeeper.gateways.server_tls import ServerCertificates, ServerTlsFiles
from bookkeeper.gateways.tokens import TokenBook
from bookkeeper.ids import Address
from bookkeeper.metrics import Metrics
from bookkeeper.net.tls import RELOAD_S
from bookkeeper.real import read_private
from bookkeeper.seams import Clock, Rng
from spark_wal.webhdfs.access.authentication import AuthenticationFailures, Authenticator

logger = logging.getLogger(__name__)

UNKNOWN_TOKEN_S: Final = 1.0
"""The least time between two looks that unknown tokens cause."""

LIST_ENDS_SOON_S: Final = 6 * 3600.0
"""Seconds before the end of a revocation list from which it is warned of."""

INSECURE_WARNING_S: Final = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessConfig:
    """How the listener is protected. The defaults are for loopback, and only for it."""

    tls: ServerTlsFiles | None = None
    token_file: str | None = None
    """What ``bk gateway token`` writes; with it every request needs a token."""
    insecure: bool = False
    """Serve beyond loopback without encryption, or without authentication: whoever reaches the port may do anything."""
    reload_s: float = RELOAD_S
    """Seconds between two looks at the files; a token that is not known makes it look at once."""

    def __post_init__(self) -> None:
        require(self.reload_s > 0, "the interval of looking for changed files is positive")
        optional = self.tls is not None and self.tls.client_ca and self.tls.client_certificates == "optional"
        if optional and self.token_file is None and not self.insecure:
            raise ConfigError("client certificates can be optional only if others show a token: give --token-file too")

    def require_safe(self, listen: Address) -> None:
        """Whether this may be served there.

        Raises:
            ConfigError: it may not; the settings that are missing are named.
        """
        if self.insecure or is_loopback(listen.host):
            return
        open_to_all = f"{listen} can be reached from other hosts"
        if self.tls is None:
            raise ConfigError(
                f"{open_to_all}, and nothing would be encrypted: give --tls-cert and --tls-key, and --client-ca or "
                "--token-file, or listen on 127.0.0.1. --insecure serves everyone who reaches it, in clear"
            )
        if self.tls.client_ca is None and self.token_file is None:
            raise ConfigError(
                f"{open_to_all}, and nobody would be asked who they are: give --client-ca (client certificates) or "
                "--token-file (bk gateway token makes one), or listen on 127.0.0.1. --insecure serves everyone"
            )


class AccessControl:
    """The rules of :class:`AccessConfig` at work.

    Raises:
        ConfigError: a file cannot be read or used, or others may read it.
    """

    def __init__(self, config: AccessConfig, clock: Clock, rng: Rng) -> None:
        self._config = config
        self._clock = clock
        self._looked = clock.monotonic()
        self.certificates = None if config.tls is None else ServerCertificates(config.tls)
        self._book = TokenBook((), {})
        self._book_stamp: tuple[int, int, int] | None = None
        if config.token_file is not None:
            self._read_book(config.token_file)
        with_certificates = config.tls is not None and config.tls.client_ca is not None
        self.authenticator = Authenticator(
            book=None if config.token_file is None else self.book,
            certificates=with_certificates,
            certificate_suffices=config.tls is not None and config.tls.client_certificates == "optional",
        )
        self.failures = AuthenticationFailures(clock, rng)
        self.on_change: Callable[[], None] | None = None
        """Called when other certificates, authorities or revocations hold from now on."""
        self.insecure = False
        """Whether it serves beyond loopback without the protection that this asks for."""

    def book(self) -> TokenBook:
        """The tokens, as they are now."""
        return self._book

    def look(self) -> None:
        """Read what has changed. What cannot be read is not used, and the old stays."""
        self._looked = self._clock.monotonic()
        if self.certificates is not None:
            if self.certificates.refresh() and self.on_change is not None:
                self.on_change()
            self._warn_of_ends(self.certificates)
        self._look_at_book()

    def _warn_of_ends(self, certificates: ServerCertificates) -> None:
        now = self._clock.wall_ms() / 1000
        left_s = certificates.not_after - now
        if left_s < EXPIRES_SOON_S:
            logger.warning("the gateway's certificate ends in %.1f days", left_s / 86_400)
        end = certificates.revocations.end
        if end is not None and end - now < LIST_ENDS_SOON_S:
            logger.warning(
                "a revocation list %s: without a newer one every client of its authority is refused",
                "has ended" if end <= now else f"ends in {end - now:.0f} s",
            )

    def _look_at_book(self) -> None:
        if self._config.token_file is not None:
            try:
                self._read_book(self._config.token_file)
            except (ConfigError, OSError) as error:
                logger.warning("the changed token file is not used, the old tokens stay: %s", in_words(error))

    def look_for_new_token(self) -> bool:
        """A token was not known: it may have just been made. Whether the file has changed."""
        if self._config.token_file is None or self._clock.monotonic() - self._looked < UNKNOWN_TOKEN_S:
            return False
        before, self._looked = self._book, self._clock.monotonic()
        self._look_at_book()
        return self._book is not before

    async def watch(self) -> None:
        """Look every now and then, until cancelled; say it every hour if this is insecure."""
        loop = asyncio.get_running_loop()
        warn_at = loop.time()
        while True:
            if self.insecure and loop.time() >= warn_at:
                logger.warning("INSECURE: whoever reaches this gateway may read and write everything in it")
                warn_at = loop.time() + INSECURE_WARNING_S
            await asyncio.sleep(self._config.reload_s)
            self.look()

    def tell(self, metrics: Metrics) -> None:
        """Bring the numbers of this up to date."""
        metrics.gauge("insecure", "1 if whoever reaches the gateway may do anything.").value = int(self.insecure)
        text = "Requests without credentials that are good."
        metrics.counter("unauthenticated_total", text).value = self.failures.count
        if self.certificates is None:
            return
        now = self._clock.wall_ms() / 1000
        left_s = int(self.certificates.not_after - now)
        metrics.gauge("certificate_left_seconds", "Until the gateway's certificate ends.").value = left_s
        soon = metrics.gauge("certificate_ends_soon", "1 if the gateway's certificate ends within 14 days.")
        soon.value = int(left_s < EXPIRES_SOON_S)
        end = self.certificates.revocations.end
        lists = metrics.gauge("crl_left_seconds", "Until the first of the revocation lists ends; infinite without one.")
        lists.value = math.inf if end is None else int(end - now)

    def _read_book(self, path: str) -> None:
        found = os.stat(path)
        stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
        if stamp != self._book_stamp:
            book = TokenBook.parse(read_private(path).decode("utf-8", "replace"), path)
            if not len(book):
                logger.warning("%s holds no token: everyone is refused (bk gateway token makes one)", path)
            self._book, self._book_stamp = book, stamp


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches it."""
    if host == "localhost":
        return True
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False
