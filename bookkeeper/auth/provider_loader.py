"""Loads the provider that the configuration names, and no other (X46)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bookkeeper.auth.config import NONE, TLS, AuthConfig
from bookkeeper.errors import ConfigError

if TYPE_CHECKING:
    from bookkeeper.auth.provider import ClientProvider, ServerProvider


def server_provider(config: AuthConfig) -> ServerProvider | None:
    """The provider that talks to clients in AUTH messages; None for ``none`` and ``tls``, which need no messages.

    Raises:
        ConfigError: there is no such module or attribute, or it does not take these options.
    """
    provider: ServerProvider | None = _load(config)
    return provider


def client_provider(config: AuthConfig) -> ClientProvider | None:
    """The provider of a client; None for ``none`` and ``tls``."""
    provider: ClientProvider | None = _load(config)
    return provider


def _load(config: AuthConfig) -> Any:
    if config.provider in (None, NONE, TLS):
        return None
    module, _, attribute = str(config.provider).partition(":")
    try:
        factory = getattr(import_module(module), attribute)
        provider = factory(config.options)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise ConfigError(f"auth.provider {config.provider}: {error}") from error
    for name in ("plugin", "exchange"):
        if not hasattr(provider, name):
            raise ConfigError(f"auth.provider {config.provider}: the provider that it returns has no {name}")
    return provider
