"""Hadoop's delegation tokens as bytes. Its clients carry a static token in one.

A stock client sends the token with every request as ``delegation=...`` instead of ``user.name``. It chooses the token
whose *service* is the gateway's resolved address. Our token is the password of Hadoop's token.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bookkeeper.secret import Secret

KIND_TLS: Final = "SWEBHDFS delegation"
KIND_PLAIN: Final = "WEBHDFS delegation"

_MAGIC: Final = b"HDTS\x00"
_TOKEN_MAX: Final = 4096


class TokenFormatError(ValueError):
    """The bytes are not a token of Hadoop's."""


@dataclass(frozen=True, slots=True)
class HadoopToken:
    """One delegation token."""

    owner: str
    password: Secret
    service: str
    """IP:PORT of the gateway, because a client does not find a token by a host's name; or ``ha-swebhdfs:NAME`` of
    several gateways."""
    kind: str = KIND_TLS

    def encode(self) -> bytes:
        """Encode it as Hadoop's ``Token`` writes itself."""
        fields = (_identifier(self.owner), self.password.reveal().encode(), self.kind.encode(), self.service.encode())
        return b"".join(_vint(len(field)) + field for field in fields)

    def url_string(self) -> Secret:
        """The token in the form of ``HADOOP_TOKEN`` and ``delegation=``."""
        return Secret(base64.urlsafe_b64encode(self.encode()).decode().rstrip("="))


def password_of(text: str) -> str:
    """The password in a token's URL form.

    Raises:
        TokenFormatError: the text is not a token.
    """
    if len(text) > _TOKEN_MAX:
        raise TokenFormatError("the token is too long")
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        _, rest = _field(data)
        password, rest = _field(rest)
        _, rest = _field(rest)
        _, rest = _field(rest)
        if rest:
            raise TokenFormatError("bytes follow the end of the token")
        return password.decode("ascii")
    except ValueError as error:  # not base64, not ASCII
        raise TokenFormatError(str(error)) from None


def token_file(tokens: Sequence[HadoopToken]) -> bytes:
    """The content of a client's file of tokens (``hadoop.token.files``)."""
    parts = [_MAGIC, _vint(len(tokens))]
    for token in tokens:
        alias = token.service.encode()
        parts += [_vint(len(alias)), alias, token.encode()]
    return b"".join([*parts, _vint(0)])


def _identifier(owner: str) -> bytes:
    """An identifier like HDFS's, so that a client can show it: an owner, but no renewer, dates or number."""
    name = owner.encode()
    return b"\x00" + _vint(len(name)) + name + _vint(0) + _vint(0) + _vint(0) * 4


def _vint(value: int) -> bytes:
    """Hadoop's integer of variable length, for numbers that are not negative."""
    if value <= 127:
        return bytes([value])
    size = (value.bit_length() + 7) // 8
    return struct.pack("b", -112 - size) + value.to_bytes(size, "big")


def _field(data: bytes) -> tuple[bytes, bytes]:
    """Split off one field: its bytes, and what follows it."""
    if not data:
        raise TokenFormatError("the token ends early")
    first = struct.unpack_from("b", data)[0]
    if first >= 0:
        length, start = first, 1
    else:
        size = -112 - first
        if not 1 <= size <= 2 or len(data) <= size:
            raise TokenFormatError("the token has a field of an impossible length")
        length, start = int.from_bytes(data[1 : 1 + size], "big"), 1 + size
    if len(data) < start + length:
        raise TokenFormatError("the token ends early")
    return data[start : start + length], data[start + length :]
