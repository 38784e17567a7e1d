"""Loads the provider that the configuration names, and no other (X46)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bookkeeper.access.principal import PrincipalKind
from bookkeeper.auth.config import NONE, SASL, TLS, TOKEN, AuthConfig
from bookkeeper.errors import ConfigError

if TYPE_CHECKING:
    from bookkeeper.auth.provider import ClientProvider, ServerProvider
    from bookkeeper.seams import Clock, Rng


def server_provider(config: AuthConfig, rng: Rng, clock: Clock) -> ServerProvider | None:
    """The provider that talks to clients in AUTH messages; None for ``none`` and ``tls``, which need no messages.

    Raises:
        ConfigError: there is no such module or attribute, it does not take these options, or a file cannot be used.
    """
    if config.provider == SASL:
        from bookkeeper.auth.sasl.providers import SaslServerProvider  # few bookies have it

        return SaslServerProvider(config.options, rng, clock, insecure=config.insecure)
    if config.provider == TOKEN:
        from bookkeeper.auth.token_provider import TokenServerProvider  # as above

        return TokenServerProvider(config.options, clock)
    provider: ServerProvider | None = _load(config)
    return provider


def client_provider(config: AuthConfig, rng: Rng) -> ClientProvider | None:
    """The provider of a client; None for ``none`` and ``tls``.

    Raises:
        ConfigError: as :func:`server_provider`.
    """
    if config.provider == SASL:
        from bookkeeper.auth.sasl.providers import SaslClientProvider  # few clients have it

        return SaslClientProvider(config.options, rng, insecure=config.insecure)
    if config.provider == TOKEN:
        from bookkeeper.auth.token_provider import TokenClientProvider  # as above

        return TokenClientProvider(config.options)
    provider: ClientProvider | None = _load(config)
    return provider


def principal_kind(config: AuthConfig) -> PrincipalKind:
    """How the clients of this provider show who they are."""
    match config.provider:
        case "sasl":
            return PrincipalKind.SASL
        case "token":
            return PrincipalKind.TOKEN
        case _:
            return PrincipalKind.PROVIDER


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
