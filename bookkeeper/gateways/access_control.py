"""Who may reach the gateway: the listener's certificates and tokens, and checks for changed files."""

from __future__ import annotations

import asyncio
import logging
import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from bookkeeper.amounts import counted
from bookkeeper.audit import AuditConfig
from bookkeeper.auth.certificate import EXPIRES_SOON_S
from bookkeeper.errors import ConfigError, in_words, require
from bookkeeper.gateways.allowed_names import AllowedName, AllowedNames
from bookkeeper.gateways.authentication import AuthenticationFailures, Authenticator, RefusalTexts
from bookkeeper.gateways.server_tls import ServerCertificates, ServerTlsFiles
from bookkeeper.gateways.tokens import TokenBook
from bookkeeper.ids import Address, is_loopback
from bookkeeper.metrics import Metrics
from bookkeeper.net.tls import RELOAD_S
from bookkeeper.real import read_private
from bookkeeper.seams import Clock, Rng

logger = logging.getLogger(__name__)

UNKNOWN_TOKEN_S: Final = 1.0
"""The least seconds between two reads of the token file because of unknown tokens."""

LIST_ENDS_SOON_S: Final = 6 * 3600.0
"""Seconds before the end of a revocation list from which the gateway warns."""

INSECURE_WARNING_S: Final = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessConfig:
    """How the listener is protected. The defaults are for loopback only."""

    tls: ServerTlsFiles | None = None
    token_file: str | None = None
    """The file that ``bk gateway token`` writes. With it every request needs a token."""
    allow: tuple[AllowedName, ...] = ()
    """Which certificates may use the gateway, and for what. None: each one for everything, if the policy allows it."""
    insecure: bool = False
    """Serve beyond loopback without encryption or authentication: everybody who reaches the port may do anything."""
    audit: AuditConfig = field(default_factory=AuditConfig)
    """Where it is noted who did what, or was refused. Default: nowhere."""
    reload_s: float = RELOAD_S
    """Seconds between two checks of the files. An unknown token causes a check at once."""

    def __post_init__(self) -> None:
        require(
            self.reload_s > 0,
            f"the interval of looking for changed files must be more than 0 s, not {self.reload_s:g} s",
        )
        with_certificates = self.tls is not None and self.tls.client_ca is not None
        require(
            not self.allow or with_certificates,
            "--allow is about certificates of clients: give --client-ca too (a token has its paths in its file)",
        )
        optional = self.tls is not None and self.tls.client_ca and self.tls.client_certificates == "optional"
        if optional and self.token_file is None and not self.insecure:
            raise ConfigError(
                "client certificates can be optional only if other clients show a token: give --token-file too"
            )

    def require_safe(self, listen: Address) -> None:
        """Check that the gateway may serve at this address.

        Raises:
            ConfigError: the gateway may not; the text names the missing settings.
        """
        if self.insecure or is_loopback(listen.host):
            return
        open_to_all = f"{listen} can be reached from other hosts"
        if self.tls is None:
            raise ConfigError(
                f"{open_to_all}, and nothing would be encrypted: give --tls-cert and --tls-key, and "
                "--client-ca or --token-file, or listen on 127.0.0.1. --insecure serves everyone who "
                "reaches the port, without encryption"
            )
        if self.tls.client_ca is None and self.token_file is None:
            raise ConfigError(
                f"{open_to_all}, and nobody would be asked who they are: give --client-ca (client "
                "certificates) or --token-file (bk gateway token makes one), or listen on 127.0.0.1. "
                "--insecure serves everyone who reaches the port"
            )


class AccessControl:
    """Applies the rules of :class:`AccessConfig`.

    Raises:
        ConfigError: a file cannot be read or used, or others may read it.
    """

    def __init__(self, config: AccessConfig, clock: Clock, rng: Rng, texts: RefusalTexts | None = None) -> None:
        """``texts`` is what a refused user reads."""
        self._config = config
        self._clock = clock
        self._looked = clock.monotonic()
        self._looked_ms = clock.wall_ms()
        self.certificates = None if config.tls is None else ServerCertificates(config.tls)
        self.generation = 0
        """Another number whenever files have changed, or a list of revoked certificates has ended."""
        self._book = TokenBook()
        self._book_stamp: tuple[int, int, int, int] | None = None
        if config.token_file is not None:
            self._read_book(config.token_file)
        with_certificates = config.tls is not None and config.tls.client_ca is not None
        self.authenticator = Authenticator(
            book=None if config.token_file is None else self.book,
            certificates=with_certificates,
            certificate_suffices=config.tls is not None and config.tls.client_certificates == "optional",
            texts=texts,
            allowed=AllowedNames(config.allow),
        )
        self.failures = AuthenticationFailures(clock, rng)
        self.on_refresh: Callable[[], None] | None = None
        """Called after each look at the files: certificates of clients may have been revoked, or have ended."""
        self.insecure = False
        """Whether the gateway serves beyond loopback without the necessary protection."""

    def book(self) -> TokenBook:
        """The tokens that are valid now."""
        return self._book

    def refresh(self) -> None:
        """Read the files that have changed. If a file cannot be read, the old one stays in use."""
        self._looked = self._clock.monotonic()
        if self.certificates is not None:
            changed = self.certificates.refresh()
            self.generation += self._has_list_ended(self.certificates) or changed
            self._warn_of_ends(self.certificates)
        self._refresh_tokens()
        if self.on_refresh is not None:
            self.on_refresh()

    def _has_list_ended(self, certificates: ServerCertificates) -> bool:
        """Whether a revocation list has ended since the last look: all clients of its authority are refused."""
        before, self._looked_ms = self._looked_ms, self._clock.wall_ms()
        end = certificates.revocations.end
        return end is not None and before < end * 1000 <= self._looked_ms

    def _warn_of_ends(self, certificates: ServerCertificates) -> None:
        now = self._clock.wall_ms() / 1000
        left_s = certificates.not_after - now
        if left_s < EXPIRES_SOON_S:
            logger.warning(
                "the gateway's certificate ends in %.1f days: renew it, or clients refuse the gateway", left_s / 86_400
            )
        end = certificates.revocations.end
        if end is not None and end - now < LIST_ENDS_SOON_S:
            logger.warning(
                "a revocation list %s: put a newer one in its file, or every client of its authority is refused",
                "has ended" if end <= now else f"ends in {end - now:.0f} s",
            )

    def _refresh_tokens(self) -> None:
        if self._config.token_file is not None:
            try:
                self._read_book(self._config.token_file)
            except (ConfigError, OSError) as error:
                logger.warning(
                    "the changed token file cannot be used, so the old tokens stay in use until it is corrected: %s",
                    in_words(error),
                )

    def refresh_for_unknown_token(self) -> bool:
        """Check the token file because of an unknown token, which may be new. Returns whether the file has changed."""
        if self._config.token_file is None or self._clock.monotonic() - self._looked < UNKNOWN_TOKEN_S:
            return False
        before, self._looked = self._book, self._clock.monotonic()
        self._refresh_tokens()
        return self._book is not before

    async def watch(self) -> None:
        """Check for changed files regularly, until cancelled. An insecure gateway warns every hour."""
        loop = asyncio.get_running_loop()
        warn_at = loop.time()
        while True:
            if self.insecure and loop.time() >= warn_at:
                logger.warning("this gateway is insecure: everybody who reaches it may read and write everything in it")
                warn_at = loop.time() + INSECURE_WARNING_S
            await asyncio.sleep(self._config.reload_s)
            self.refresh()

    def update_metrics(self, metrics: Metrics) -> None:
        """Update the metrics of access."""
        metrics.gauge(
            "insecure", "1 if the gateway serves a network without encryption or authentication, else 0."
        ).value = int(self.insecure)
        text = "Requests without valid credentials."
        metrics.counter("unauthenticated_total", text).value = self.failures.count
        if self.certificates is None:
            return
        now = self._clock.wall_ms() / 1000
        left_s = int(self.certificates.not_after - now)
        metrics.gauge("certificate_left_seconds", "Seconds until the gateway's certificate ends.").value = left_s
        soon = metrics.gauge("certificate_ends_soon", "1 if the gateway's certificate ends within 14 days, else 0.")
        soon.value = int(left_s < EXPIRES_SOON_S)
        end = self.certificates.revocations.end
        lists = metrics.gauge(
            "crl_left_seconds", "Seconds until the first revocation list ends; infinite without a list."
        )
        lists.value = math.inf if end is None else int(end - now)

    def _read_book(self, path: str) -> None:
        found = os.stat(path)
        stamp = (found.st_mtime_ns, found.st_size, found.st_ino, found.st_ctime_ns)
        if stamp != self._book_stamp:
            book = TokenBook.parse(read_private(path).decode("utf-8", "replace"), path)
            if not len(book):
                logger.warning(
                    "%s holds no token, so every request is refused: make a token with bk gateway token", path
                )
            if endless := [each.id for each in book if each.end_s is None]:
                logger.warning(
                    "in %s %s (%s): bk gateway token --days makes one that does",
                    path,
                    counted(len(endless), "token", "never ends", "never end"),
                    ", ".join(endless[:10]) + (", ..." if len(endless) > 10 else ""),
                )
            self._book, self._book_stamp = book, stamp
            self.generation += 1
