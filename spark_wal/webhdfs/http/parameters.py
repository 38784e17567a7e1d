"""WebHDFS's query parameters: the allowed values, and the errors for others.

Names are not case-sensitive. The first of two equal names counts, an empty value counts as not given, and unknown names
are ignored.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote_plus

from spark_wal.webhdfs.errors import IllegalArgumentError
from spark_wal.webhdfs.files.records import RenameMode

CREATE_FLAGS: Final = (
    "CREATE", "OVERWRITE", "APPEND", "SYNC_BLOCK", "LAZY_PERSIST", "NEW_BLOCK", "NO_LOCAL_WRITE", "SHOULD_REPLICATE",
    "IGNORE_CLIENT_LOCALITY", "NO_LOCAL_RACK",
)  # fmt: skip
"""The values in Hadoop's order."""

DEFAULT_USER: Final = "dr.who"
"""The user of a request without ``user.name``."""

_USER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9._-]*[$]?")
_ACTION: Final = re.compile(r"[r-][w-][x-]")
_LONG_MAX: Final = (1 << 63) - 1
_SHORT_MAX: Final = (1 << 15) - 1
_PERMISSION_MAX: Final = 0o1777


def _invalid(name: str, why: str) -> IllegalArgumentError:
    return IllegalArgumentError(f'Invalid value for webhdfs parameter "{name}": {why}')


class Query:
    """The parameters of one request."""

    def __init__(self, text: str) -> None:
        self._values: dict[str, str] = {}
        for part in text.split("&"):
            name, _, value = part.partition("=")
            if name:
                if "%" in value or "+" in value:
                    value = unquote_plus(value)
                if not value.isascii():  # raw bytes are surrogates, which cannot be encoded again
                    value = value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
                self._values.setdefault(name.lower(), value)
        self.op = (self._values.get("op") or "").upper()
        """The operation in capitals. Empty: the request gives none."""

    def given(self, name: str) -> bool:
        """Whether the parameter is given at all, even empty."""
        return name in self._values

    def text(self, name: str) -> str | None:
        return self._values.get(name) or None

    def required(self, name: str, op: str) -> str:
        """The value. Raises IllegalArgumentError: it is missing or empty."""
        value = self.text(name)
        if value is None:
            raise IllegalArgumentError(f"Required param {name} for op: {op} is null or empty")
        return value

    def boolean(self, name: str, default: bool) -> bool:
        value = self.text(name)
        if value is None:
            return default
        if (lower := value.lower()) not in ("true", "false"):
            raise _invalid(name, f'Failed to parse "{value}" to Boolean.')
        return lower == "true"

    def long(self, name: str, default: int | None, *, minimum: int) -> int | None:
        return self._number(name, default, minimum, _LONG_MAX, "long integer")

    def short(self, name: str, default: int, *, minimum: int) -> int:
        value = self._number(name, default, minimum, _SHORT_MAX, "short integer")
        assert value is not None
        return value

    def _number(self, name: str, default: int | None, minimum: int, maximum: int, kind: str) -> int | None:
        value = self.text(name)
        if value is None:
            return default
        number = int(value) if re.fullmatch(r"[+-]?[0-9]{1,1000}", value) else None
        if number is None or not -maximum - 1 <= number <= maximum:
            raise _invalid(name, f'Failed to parse "{value}" as a radix-10 {kind}.')
        if number < minimum:
            raise _invalid(name, f"Invalid parameter range: {name} = {number} < {minimum}")
        return number

    def permission(self, default: int) -> int:
        value = self.text("permission")
        if value is None:
            return default
        if not re.fullmatch(r"[0-7]+", value):
            raise _invalid("permission", f'Failed to parse "{value}" as a radix-8 short integer.')
        number = int(value, 8)
        if number > _PERMISSION_MAX:
            raise _invalid("permission", f"Invalid parameter range: permission = {value} > 1777")
        return number

    def user(self) -> str:
        value = self.text("user.name")
        if value is None:
            return DEFAULT_USER
        if not _USER.fullmatch(value):
            raise _invalid(
                "user.name", f'Invalid value: "{value}" does not belong to the domain ^[A-Za-z_][A-Za-z0-9._-]*[$]?$'
            )
        return value

    def create_flags(self) -> frozenset[str]:
        """The flags of a CREATE. HDFS's redirects encode them twice."""
        given = self.text("createflag")
        if given is None:
            return frozenset()
        value = unquote_plus(given)
        flags = frozenset(name.strip().upper() for name in value.split(",")) if value else frozenset[str]()
        for name in sorted(flags.difference(CREATE_FLAGS)):
            raise _invalid("createflag", f"No enum constant org.apache.hadoop.fs.CreateFlag.{name}")
        return flags

    def action(self, op: str) -> str:
        """The action of a CHECKACCESS."""
        value = self.required("fsaction", op)
        if not _ACTION.fullmatch(value):
            raise _invalid("fsaction", f'Invalid value: "{value}" does not belong to the domain [r-][w-][x-]')
        return value

    def destination(self, op: str) -> str:
        value = self.required("destination", op)
        if not value.startswith("/"):
            raise _invalid("destination", f'Invalid parameter value: destination = "{value}" is not an absolute path.')
        return value

    def rename_mode(self) -> RenameMode:
        value = self.text("renameoptions")
        if value is None:
            return RenameMode.BARE
        options = {option.strip().upper() for option in value.split(",")}
        for option in sorted(options - {"NONE", "OVERWRITE", "TO_TRASH"}):
            raise _invalid("renameoptions", f"No enum constant org.apache.hadoop.fs.Options.Rename.{option}")
        return RenameMode.OVERWRITE if "OVERWRITE" in options else RenameMode.NONE
