"""Where bookies stand, from a file or a script: blocking calls, for a worker.

The file has a line for each bookie or host, ``bk1:3181 /east/rack1``; ``#`` begins a comment. The script is that of
Apache's clients (``networkTopologyScriptFileName``): it gets hosts as arguments, and prints a location for each.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Final

from bookkeeper.errors import ConfigError

FILE_MAX: Final = 4 * 1024 * 1024
HOSTS_MAX: Final = 100
"""Hosts that one call of the script gets, as with Apache's clients."""
SCRIPT_S: Final = 30.0
PRINTED_MAX: Final = 1024 * 1024
"""Bytes that a script prints at most for one call."""


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
    """What the script prints for the hosts of these bookies. It does not get a host that begins with a dash, which it
    would take for an option: of that nothing is known.

    Raises:
        OSError: it cannot be run.
        ConfigError: it failed, took too long, or printed too much or another number of locations than it got hosts.
    """
    hosts = list(dict.fromkeys(host for host in map(host_of, names) if not host.startswith("-")))
    said: dict[str, str] = {}
    for at in range(0, len(hosts), HOSTS_MAX):
        some = hosts[at : at + HOSTS_MAX]
        code, output = _run([path, *some])
        printed = output.decode("utf-8", "replace").split()
        if code or len(printed) != len(some):
            raise ConfigError(
                f"{path} got {len(some)} hosts, printed {len(printed)} locations, and ended with {code}: it "
                "must print one for each, and end with 0"
            )
        said.update(zip(some, printed, strict=True))
    return {name: said[host] for name in names if (host := host_of(name)) in said}


def _run(command: Sequence[str]) -> tuple[int, bytes]:
    """The code with which a command ends, and what it prints. It gets no input, and what it has begun ends with it.

    Raises: OSError: it cannot be run. ConfigError: it took too long, or printed too much.
    """
    end = time.monotonic() + SCRIPT_S
    output = bytearray()
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        assert process.stdout is not None
        printing, waiting = process.stdout.fileno(), select.poll()
        waiting.register(printing, select.POLLIN)
        try:
            while True:
                left = end - time.monotonic()
                if left <= 0 or not waiting.poll(1000 * left):
                    raise subprocess.TimeoutExpired(command, SCRIPT_S)
                if not (data := os.read(printing, 64 * 1024)):
                    return process.wait(max(0.0, end - time.monotonic())), bytes(output)
                output += data
                if len(output) > PRINTED_MAX:
                    raise ConfigError(f"{command[0]} printed more than {PRINTED_MAX} bytes: it must print locations")
        except subprocess.TimeoutExpired:
            raise ConfigError(f"{command[0]} gave no locations within {SCRIPT_S:g} s") from None
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)  # its session is its own


def host_of(name: str) -> str:
    """The host in a bookie's id; an id without a port is its own host."""
    host, colon, port = name.rpartition(":")
    return host.removeprefix("[").removesuffix("]") if colon and port.isdecimal() else name
