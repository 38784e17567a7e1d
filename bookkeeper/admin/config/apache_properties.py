"""Reads the text of Apache's settings, ``bk_server.conf``: a file of Java's properties. A codec."""

from __future__ import annotations

from bookkeeper.errors import ConfigError


def parse_properties(text: str) -> dict[str, str]:
    """Name -> value, in the file's order. A setting that is there without a value has an empty one.

    Comments begin with ``#`` or ``!``; a line that ends with a backslash goes on in the next one; ``=`` or ``:`` stand
    between name and value.

    Raises:
        ConfigError: a line is no setting, a setting is there twice, or one refers to another file or setting, which is
            not done here. The error names the line.
    """
    found: dict[str, str] = {}
    seen: dict[str, int] = {}
    for number, line in _lines(text):
        marks = [at for mark in "=:" if (at := line.find(mark)) >= 0]
        if not marks:
            raise ConfigError(f"line {number} is no setting, because it has no =: {line}")
        name, value = line[: min(marks)].strip(), line[min(marks) + 1 :].strip()
        if not name:
            raise ConfigError(f"line {number} has no name before {line[min(marks)]}")
        if name == "include":
            raise ConfigError(f"line {number} includes {value}: put what is there into one file")
        if "${" in value:
            raise ConfigError(f"line {number}: {name} refers to another value ({value}): write the value itself")
        if name in seen:
            raise ConfigError(f"{name} is there twice, in lines {seen[name]} and {number}")
        seen[name], found[name] = number, value
    return found


def _lines(text: str) -> list[tuple[int, str]]:
    """Each logical line, with the number of its first one."""
    lines: list[tuple[int, str]] = []
    begun: tuple[int, str] | None = None
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if begun is None and (not line or line[0] in "#!"):
            continue
        first, before = begun or (number, "")
        if line.endswith("\\"):
            begun = first, before + line[:-1]
            continue
        begun = None
        lines.append((first, before + line))
    if begun is not None:
        raise ConfigError(f"line {begun[0]} ends with a backslash, and nothing comes after it")
    return lines
