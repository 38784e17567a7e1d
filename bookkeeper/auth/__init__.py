"""Who is on the other end of a connection: providers of authentication, both sides.

A provider is chosen by its explicitly configured name and never looked for elsewhere (X46): ``none``, ``tls`` (the
certificate of the TLS handshake), or ``MODULE:ATTRIBUTE`` for one of your own.
"""

from __future__ import annotations

from bookkeeper.auth.config import AuthConfig

__all__ = ["AuthConfig"]
