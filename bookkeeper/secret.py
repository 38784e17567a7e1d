"""Values that do not show themselves."""

from __future__ import annotations

import hmac
import re
from typing import Final, NoReturn


class Secret:
    """A text that ends in no log, traceback, pickle or metric (X59): only :meth:`reveal` gives it."""

    __slots__ = ("__text",)

    def __init__(self, text: str) -> None:
        self.__text = text

    def reveal(self) -> str:
        """The text itself: for the one place that needs it."""
        return self.__text

    def __repr__(self) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self.__text.encode(), other.__text.encode())

    def __hash__(self) -> NoReturn:
        raise TypeError("a secret has no hash")

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not pickled")


_IN_A_QUERY: Final = re.compile(r"(?i)([?&;][^=&?;/]*(?:passw|secret|token|credential)[^=&?;/]*=)[^&;\s'\"]*")
_BEFORE_A_HOST: Final = re.compile(r"(://)[^/?#\s@]*@")


def without_secrets(text: str) -> str:
    """An address, or a text with addresses in it, as it may be shown: passwords and tokens are ``***``."""
    return _BEFORE_A_HOST.sub(r"\1***@", _IN_A_QUERY.sub(r"\1***", text))
