"""The table ``[auth]``: which provider of authentication is used, with which options. The same on both sides."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bookkeeper.errors import require

NONE: Final = "none"
TLS: Final = "tls"

_PLACE = re.compile(r"[A-Za-z_][\w.]{0,200}:[A-Za-z_]\w{0,100}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthConfig:
    """The table ``[auth]``."""

    provider: str | None = None
    """``none``: nobody is asked, and a client that asks hears that nobody is. ``tls``: the certificate shown in the TLS
    handshake, by the rules ``allow`` and ``roles`` of the bookie's ``[tls]``. ``MODULE:ATTRIBUTE``: one of your own
    (:mod:`bookkeeper.auth.provider`). Default: ``tls`` on a bookie that asks for client certificates, else ``none``."""

    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Options for a provider of your own; never shown. Put secrets into files that these options name."""

    required: bool = False
    """On a client with a provider of its own: a bookie that asks nobody who he is (it answers as
    ``AuthDisabledPlugin``) is not spoken to. Without it such a bookie is used, as by Apache's clients, and a
    warning says so once. A bookie does not have it: its provider always asks."""

    def __post_init__(self) -> None:
        named = self.provider in (None, NONE, TLS)
        require(
            named or _PLACE.fullmatch(str(self.provider)) is not None,
            f'auth.provider must be "none", "tls" or MODULE:ATTRIBUTE, not "{self.provider}"',
        )
        require(
            not (named and self.options), "auth.options needs a provider of your own (auth.provider = MODULE:ATTRIBUTE)"
        )
        require(
            not (named and self.required),
            "auth.required needs a provider of your own (auth.provider = MODULE:ATTRIBUTE)",
        )
