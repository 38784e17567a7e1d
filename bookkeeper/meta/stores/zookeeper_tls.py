"""Connections to ZooKeeper by TLS: by the same code, with the same rules, as those to bookies.

The client's own context would trust the public authorities beside the one that was named, would take a key that others
may read, and would never look at its files again.
"""

from __future__ import annotations

import logging
from typing import Any

from kazoo.handlers.threading import SequentialThreadingHandler

from bookkeeper.errors import ConfigError
from bookkeeper.meta.stores.credentials import ZooKeeperTls
from bookkeeper.real import FileTls
from bookkeeper.seams import TlsFiles

logger = logging.getLogger(__name__)


class TlsHandler(SequentialThreadingHandler):  # type: ignore[misc]  # the library has no types
    """The client's threads, and its connections.

    Raises:
        ConfigError: a file cannot be read or used, or others may read the private key.
    """

    def __init__(self, tls: ZooKeeperTls) -> None:
        super().__init__()
        self._public = tls.ca is None
        self._tls = FileTls(
            TlsFiles(server=False, cert=tls.certificate, key=tls.key, ca=tls.ca, verify_host=tls.check_host)
        )

    def create_connection(
        self, address: tuple[str, int], hostname: str | None = None, timeout: float | None = None, **_: Any
    ) -> Any:
        """Connect, and shake hands. Raises: OSError."""
        try:
            self._tls.refresh()
        except ConfigError as error:
            logger.warning("the changed TLS files for ZooKeeper cannot be used, so the old ones stay in use: %s", error)
        context = self._tls.context
        if self._public:
            context.load_default_certs()
        plain = super().create_connection(address, timeout=timeout)
        try:
            plain.settimeout(timeout)
            return context.wrap_socket(plain, server_hostname=hostname)
        except BaseException:
            plain.close()
            raise
