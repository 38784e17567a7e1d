"""The table ``[auth]``: which provider of authentication is used, with which options. The same on both sides."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bookkeeper.errors import require

NONE: Final = "none"
TLS: Final = "tls"
SASL: Final = "sasl"
TOKEN: Final = "token"

_PLACE = re.compile(r"[A-Za-z_][\w.]{0,200}:[A-Za-z_]\w{0,100}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthConfig:
    """The table ``[auth]``."""

    provider: str | None = None
    """``none``: nobody is asked, and a client that asks hears that nobody is. ``tls``: the certificate shown in the TLS
    handshake, by the rules ``allow`` and ``roles`` of the bookie's ``[tls]``. ``token``: signed tokens that end
    (:mod:`bookkeeper.auth.token_provider`). ``sasl``: DIGEST-MD5, as Apache's programs speak it, which is obsolete
    (:mod:`bookkeeper.auth.sasl`). ``MODULE:ATTRIBUTE``: one of your own (:mod:`bookkeeper.auth.provider`). Default:
    ``tls`` on a bookie that asks for client certificates, else ``none``."""

    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Options of the provider; never shown. Put secrets into files that these options name. ``token`` and ``sasl`` have
    ``file``: on a bookie the signing keys or the users, on a client the token, or user and password."""

    required: bool = False
    """On a client with ``token``, ``sasl`` or a provider of its own: a bookie that asks nobody who he is (it answers as
    ``AuthDisabledPlugin``) is not spoken to. Without it such a bookie is used, as by Apache's clients, and a
    warning says so once. A bookie does not have it: its provider always asks."""

    insecure: bool = False
    """With ``sasl``: speak it also over unencrypted connections, also beyond this machine. Whoever listens there can
    try passwords, and can take over the connection."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> AuthConfig | None:
        """A client's settings from ``BK_AUTH`` (the provider), ``BK_AUTH_FILE`` (its option ``file``), and 1 or 0 in
        ``BK_AUTH_REQUIRED`` and ``BK_AUTH_INSECURE``. None without ``BK_AUTH``.

        Raises:
            ConfigError: a value is not allowed, or there is one without ``BK_AUTH``.
        """
        provider, file = environment.get("BK_AUTH") or None, environment.get("BK_AUTH_FILE") or None
        flags = {}
        for name in ("required", "insecure"):
            variable = f"BK_AUTH_{name.upper()}"
            value = environment.get(variable) or "0"
            require(value in ("0", "1"), f'{variable} in the environment must be 0 or 1, not "{value}"')
            flags[name] = value == "1"
        if provider is None:
            require(
                file is None and not any(flags.values()),
                "--auth-file, or BK_AUTH_FILE and the like in the environment, needs BK_AUTH or --auth: token or sasl",
            )
            return None
        return cls(provider=provider, options={} if file is None else {"file": file}, **flags)

    def __post_init__(self) -> None:
        silent = self.provider in (None, NONE, TLS)
        known = silent or self.provider in (SASL, TOKEN)
        require(
            known or _PLACE.fullmatch(str(self.provider)) is not None,
            f'auth.provider must be "none", "tls", "token", "sasl" or MODULE:ATTRIBUTE, not "{self.provider}"',
        )
        others = "auth.provider = token, sasl or MODULE:ATTRIBUTE"
        require(not (silent and self.options), f"auth.options needs a provider that has some ({others})")
        require(not (silent and self.required), f"auth.required needs a provider that talks to bookies ({others})")
        require(
            not self.insecure or self.provider == SASL,
            'auth.insecure is for auth.provider = "sasl" alone: it lets DIGEST-MD5 be spoken without TLS',
        )
