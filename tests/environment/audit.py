"""``make audit``: known weaknesses of dependencies, secrets in the tree, and code that a security linter dislikes.

It is no part of ``make test``: what is known of dependencies changes without us, and needs a network. The tools have
an environment of their own, in fixed versions. What is excused stands here, with a reason and a day on which the
excuse ends.
"""

from __future__ import annotations

import datetime
import re
import subprocess
import sys
import venv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
TOOLS: Final = ROOT / ".venv-audit"
VERSIONS: Final = ("pip-audit==2.9.0", "cyclonedx-bom==7.1.0")

SECRETS: Final = {
    "a private key": r"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----\s+[A-Za-z0-9+/]{16}",
    "a key of a cloud": r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bAIza[0-9A-Za-z_-]{35}\b",
    "a token of a forge or a chat": r"\bgh[pousr]_[A-Za-z0-9]{36}\b|\bglpat-[\w-]{20}\b|\bxox[abp]-[\w-]{20}",
    "a password in an address": r"\b[a-z+]{2,12}://[\w.-]+:[^\s/@{}<>$*.\"']{6,}@[\w-]+\.[\w.-]+",
}
"""What it is -> how it looks."""

EXCUSED: Final[dict[str, tuple[str, datetime.date]]] = {
    "tests/bookkeeper/meta/test_service_uri.py: a password in an address": (
        "addresses that are refused because of it",
        datetime.date(2029, 1, 1),
    ),
}
"""``path: what`` or the name of a weakness -> why it is no danger, and the day on which that is looked at again."""

LINTED: Final = ("bookkeeper", "journal_manager", "segments", "spark_wal", "pyspark_bookkeeper")
NOT_ASKED: Final = {
    "S101": "asserts are for mistakes of the programmer; what guards data is a check",
    "S104": "an address that is compared, not listened at",
    "S105": "names of settings, not passwords",
    "S110": "closing what has failed already",
    "S311": "jitter and simulated chance; what must not be guessed comes from `secrets`",
    "S324": "formats of Apache's and HDFS's: a ledger's master key, a block's checksum",
    "S603": "lists of arguments, without a shell",
    "S608": "names of tables are our own",
}
"""Rules of the linter that are not asked, and why."""


def secrets_in(text: str) -> Iterator[tuple[int, str]]:
    """Lines with something that looks like a secret: (number, what)."""
    for what, pattern in SECRETS.items():
        for found in re.finditer(pattern, text):
            yield text.count("\n", 0, found.start()) + 1, what


def tree() -> Iterator[Path]:
    """Every file that git keeps."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    yield from (ROOT / name for name in listed.split("\0") if name)


def look_for_secrets(paths: Iterable[Path], today: datetime.date) -> list[str]:
    """What was found and is not excused, as ``path:line: what``."""
    found = []
    for path in paths:
        try:
            text = path.read_text()
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue
        name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
        found += [f"{name}:{line}: {what}" for line, what in secrets_in(text) if not excused(f"{name}: {what}", today)]
    return found


def excused(what: str, today: datetime.date) -> bool:
    """Whether there is an excuse whose day has not come."""
    return what in EXCUSED and today < EXCUSED[what][1]


def run(name: str, *command: str) -> bool:
    """Run a tool, and say how it ended."""
    print(f"\n== {name}", flush=True)
    ended = subprocess.run(command, cwd=ROOT, check=False)
    print("ok" if ended.returncode == 0 else f"ended with {ended.returncode}", flush=True)
    return ended.returncode == 0


def tool(name: str) -> str:
    """A tool's path; the environment of the tools is made if it is not there."""
    if not (TOOLS / "bin" / name).exists():
        venv.create(TOOLS, with_pip=True)
        subprocess.run([str(TOOLS / "bin" / "pip"), "install", "--quiet", *VERSIONS], check=True)
    return str(TOOLS / "bin" / name)


def main() -> int:
    today = datetime.datetime.now(datetime.UTC).date()
    print("== secrets in the tree")
    secrets = look_for_secrets(tree(), today)
    print("\n".join(secrets) or "ok")
    lint = [sys.executable, "-m", "ruff", "check", "--no-cache", "--select", "S", "--ignore", ",".join(NOT_ASKED)]
    linted = run("the linter's rules of security", *lint, *LINTED)
    ignored = [part for name in EXCUSED if excused(name, today) and ":" not in name for part in ("--ignore-vuln", name)]
    audit = [
        "-r",
        "requirements.lock",
        "--require-hashes",
        "--disable-pip",
        "--strict",
    ]  # what could not be looked up is no success
    known = run("known weaknesses of dependencies", tool("pip-audit"), *audit, *ignored)
    if not known:
        print("Either a dependency has a known weakness, or the list of weaknesses could not be had: see above.")
    return 0 if not secrets and linted and known else 1


if __name__ == "__main__":
    sys.exit(main())
