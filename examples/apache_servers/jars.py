"""The class path of Apache BookKeeper: fetched by Maven into a cache, once per version.

The cache is ``$XDG_CACHE_HOME`` (or ``~/.cache``) ``/bookkeeper-py/apache-VERSION``. It is there completely or not at
all: Maven fills a directory beside it, which is then renamed. Two processes that ask at once wait for each other.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Final

from bookkeeper.errors import ConfigError
from bookkeeper.launchers.java import find_java

VERSION: Final = "4.17.3"
"""The release that everything here is proven with."""

NEWEST: Final = "4.18.0"
"""The newest release whose server Maven Central has with all that it depends on: the peer to be measured against. Of
4.18.1 and 4.18.2 it has parts."""

VARIABLE: Final = "BK_APACHE_RELEASE"
"""The variable of the environment that names another release than :data:`VERSION`."""

_POMS: Final = {VERSION: "pom.xml", NEWEST: "pom-newest.xml"}
_TIMEOUT_S: Final = 600
_OFFLINE: Final = ("Unknown host", "Connection refused", "Connect timed out", "Network is unreachable", "offline mode")


def jars(environment: Mapping[str, str] | None = None) -> str:
    """The class path; the first call on a machine downloads about 60 MB. Blocking.

    Args:
        environment: instead of the process's: where HOME, PATH, XDG_CACHE_HOME and JAVA_HOME come from.

    Raises:
        ConfigError: a release that is not known here, no Java, or (when nothing is cached) no ``mvn``, no network, or
            Maven failed; says which.
    """
    environment = os.environ if environment is None else environment
    chosen = release(environment)
    pom = files(__package__).joinpath(_POMS[chosen]).read_bytes()
    proof = f"bookkeeper-server-{chosen}.jar"
    return fetch_jars(f"Apache BookKeeper {chosen}", pom, cache_directory(environment), proof, environment)


def release(environment: Mapping[str, str] | None = None) -> str:
    """The release that is used. Raises: ConfigError: the environment names one that is not known here."""
    chosen = (os.environ if environment is None else environment).get(VARIABLE, VERSION)
    if chosen not in _POMS:
        raise ConfigError(f"{VARIABLE} must be one of {', '.join(_POMS)}, not {chosen!r}")
    return chosen


def fetch_jars(what: str, pom: bytes, cache: Path, proof: str, environment: Mapping[str, str]) -> str:
    """The class path of what a POM asks for, fetched into ``cache`` unless it is there. Blocking.

    Args:
        what: the name and version of what is fetched, for errors.
        proof: a jar that must be among them.

    Raises:
        ConfigError: as :func:`jars`.
    """
    find_java(environment)
    if not cache.is_dir():
        cache.parent.mkdir(parents=True, exist_ok=True)
        with _locked(cache.with_name(f"{cache.name}.lock")):
            if not cache.is_dir():
                _resolve(what, pom, cache, proof, environment)
    return os.pathsep.join(str(jar) for jar in sorted(cache.glob("*.jar")))


def whats_missing(environment: Mapping[str, str] | None = None) -> str | None:
    """Say why Apache's programs cannot be run here; None: they can. It downloads nothing."""
    environment = os.environ if environment is None else environment
    try:
        find_java(environment)
    except ConfigError as error:
        return str(error)
    cache = cache_directory(environment)
    if cache.is_dir() or _maven(environment):
        return None
    return f"Apache BookKeeper {release(environment)} is not in {cache}, and there is no mvn to fetch it"


def cache_directory(environment: Mapping[str, str]) -> Path:
    """The directory that keeps the jars of the release. Raises: ConfigError: as :func:`release`."""
    base = environment.get("XDG_CACHE_HOME") or str(Path(environment.get("HOME", "~")).expanduser() / ".cache")
    return Path(base) / "bookkeeper-py" / f"apache-{release(environment)}"


def _maven(environment: Mapping[str, str]) -> str | None:
    return shutil.which("mvn", path=environment.get("PATH", ""))


def _resolve(what: str, pom: bytes, cache: Path, proof: str, environment: Mapping[str, str]) -> None:
    maven = _maven(environment)
    if maven is None:
        raise ConfigError(
            f"{what} is fetched by Maven, and there is no mvn on the PATH: install maven, or copy the jars of another "
            f"machine's {cache} to the same place"
        )
    with tempfile.TemporaryDirectory(dir=cache.parent, prefix=f"{cache.name}.") as temporary:
        asked_for = Path(temporary) / "pom.xml"
        asked_for.write_bytes(pom)
        fetched = Path(temporary) / "jars"
        said = _run_maven(what, maven, asked_for, fetched, environment)
        if not (fetched / proof).exists():
            raise ConfigError(f"mvn brought no {proof}: {said[-1000:]}")
        fetched.rename(cache)


def _run_maven(what: str, maven: str, pom: Path, into: Path, environment: Mapping[str, str]) -> str:
    goal = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
    scope = ("-DincludeScope=runtime", f"-DoutputDirectory={into}")
    command = [maven, "--batch-mode", "--quiet", "-f", str(pom), goal, *scope]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT_S, env=dict(environment), check=False
        )
    except subprocess.TimeoutExpired as expired:
        raise ConfigError(f"mvn did not fetch {what} within {_TIMEOUT_S} s") from expired
    said = f"{done.stdout}{done.stderr}".strip()
    if done.returncode:
        why = "no network, or no way to Maven Central" if any(sign in said for sign in _OFFLINE) else "mvn failed"
        raise ConfigError(f"{what} could not be fetched: {why}. {said[-1000:]}")
    return said


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Let one process at a time in. The kernel releases the lock when the process ends."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
