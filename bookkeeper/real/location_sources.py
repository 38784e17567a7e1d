"""Where bookies stand, from a file or a script: blocking calls, for a worker.

The file has a line for each bookie or host, ``bk1:3181 /east/rack1``; ``#`` begins a comment. The script is that of
Apache's clients (``networkTopologyScriptFileName``): it gets hosts as arguments, and prints a location for each.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from typing import Final

from bookkeeper.errors import ConfigError

FILE_MAX: Final = 4 * 1024 * 1024
HOSTS_MAX: Final = 100
"""Hosts that one call of the script gets, as with Apache's clients."""
SCRIPT_S: Final = 30.0


def from_file(path: str, names: Sequence[str]) -> Mapping[str, str]:
    """What the file says of these bookies: of a bookie itself, else of its host.

    Raises:
        OSError: the file cannot be read.
        ConfigError: a line has another form; the text has its number.
    """
    with open(path, "rb") as file:
        data = file.read(FILE_MAX + 1)
    if len(data) > FILE_MAX:
        raise ConfigError(f"{path} is too large: it may have at most {FILE_MAX} bytes")
    said: dict[str, str] = {}
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        words = line.partition("#")[0].split()
        if words and len(words) != 2:
            raise ConfigError(f"{path}, line {number}: expected a bookie and its location, as bk1:3181 /rack1")
        if words:
            said[words[0]] = words[1]
    found = {name: said.get(name, said.get(host_of(name))) for name in names}
    return {name: location for name, location in found.items() if location is not None}


def from_script(path: str, names: Sequence[str]) -> Mapping[str, str]:
    """What the script prints for the hosts of these bookies.

    Raises:
        OSError: it cannot be run.
        ConfigError: it failed, took too long, or printed another number of locations than it got hosts.
    """
    hosts = list(dict.fromkeys(map(host_of, names)))
    said: dict[str, str] = {}
    for at in range(0, len(hosts), HOSTS_MAX):
        some = hosts[at : at + HOSTS_MAX]
        try:
            done = subprocess.run([path, *some], capture_output=True, timeout=SCRIPT_S, check=False)
        except subprocess.TimeoutExpired:
            raise ConfigError(f"{path} gave no locations within {SCRIPT_S:g} s") from None
        printed = done.stdout.decode("utf-8", "replace").split()
        if done.returncode or len(printed) != len(some):
            raise ConfigError(
                f"{path} got {len(some)} hosts, printed {len(printed)} locations, and ended with {done.returncode}: it "
                "must print one for each, and end with 0"
            )
        said.update(zip(some, printed, strict=True))
    return {name: said[host_of(name)] for name in names}


def host_of(name: str) -> str:
    """The host in a bookie's id; an id without a port is its own host."""
    host, colon, port = name.rpartition(":")
    return host.removeprefix("[").removesuffix("]") if colon and port.isdecimal() else name
