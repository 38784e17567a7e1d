"""Lines of the audit log about verbs that change the cluster by themselves: no server sees what they write.

``BK_AUDIT`` names a file of this user. Each verb adds a line when it ends; verbs that run at the same time take turns.
What was typed stands in it but for options, which may name secrets.
"""

from __future__ import annotations

import getpass
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import click

from bookkeeper.admin.shared.interruption import note
from bookkeeper.errors import ConfigError, in_words
from bookkeeper.real import system_seams

if TYPE_CHECKING:
    from bookkeeper.audit import AuditAction, AuditConfig

FILE: Final = "BK_AUDIT"
TURN_S: Final = 10.0
"""Seconds that a verb waits for the others that write a line."""
_LOOK_S: Final = 0.02

_DELETES: Final = frozenset({"delete", "drop", "forget", "purge", "release", "remove", "revoke", "truncate"})
_CREATES: Final = frozenset({"add", "create", "import", "init"})


@contextmanager
def audited(environment: dict[str, str] | None = None) -> Iterator[None]:
    """Note what is done inside, and how it ended, if a file for that is named.

    Raises:
        ConfigError: it cannot be written; nothing was done.
    """
    path = (os.environ if environment is None else environment).get(FILE)
    if not path:
        yield
        return
    from bookkeeper.audit import AuditConfig

    if not os.path.isabs(path):
        raise ConfigError(f'{FILE} in the environment must be an absolute path of a file, not "{path}"')
    config = AuditConfig(to=path)
    _write(config, b"")
    try:
        yield
    except BaseException as error:
        _note(config, f"{type(error).__name__}: {in_words(error)}")
        raise
    _note(config, "")


def _note(config: AuditConfig, reason: str) -> None:
    """Write the line. What was done stays done where it cannot be written; then the user is told."""
    from bookkeeper.audit import AuditEvent
    from bookkeeper.audit.audit_event import event_line

    machine = platform.node()
    event = AuditEvent(
        what=_action(),
        who=f"{getpass.getuser()} on {machine}",
        claimed=True,
        address=machine,
        on=_typed(),
        allowed=True,
        reason=reason,
    )
    try:
        _write(config, event_line(event, system_seams().clock.wall_ms()))
    except (ConfigError, OSError) as error:
        note(f"bk: this was done, and is not in the audit log: {in_words(error)}")


def _write(config: AuditConfig, line: bytes) -> None:
    """Raises: ConfigError, OSError."""
    from bookkeeper.audit.audit_file import AuditFile

    assert config.to is not None
    file, end = AuditFile(config.to, config, system_seams().disk), time.monotonic() + TURN_S
    while True:
        try:
            file.open()
            break
        except ConfigError as error:
            if not isinstance(error.__cause__, BlockingIOError) or time.monotonic() > end:
                raise
            time.sleep(_LOOK_S)
    try:
        if line:
            file.write(line)
    finally:
        file.close()


def _action() -> AuditAction:
    from bookkeeper.audit import AuditAction

    context = click.get_current_context(silent=True)
    name = "" if context is None else context.info_name or ""
    if name in _DELETES:
        return AuditAction.DELETE
    return AuditAction.CREATE if name in _CREATES else AuditAction.ADMINISTER


def _typed() -> str:
    """The verb with its arguments."""
    context = click.get_current_context(silent=True)
    if context is None:
        return "bk"
    words = [context.command_path]
    for parameter in context.command.params:
        if isinstance(parameter, click.Argument) and parameter.name is not None:
            value = context.params.get(parameter.name)
            words += map(_shown, value if isinstance(value, tuple) else (value,))
    return " ".join(word for word in words if word)


def _shown(value: object) -> str:
    return "" if value is None else str(getattr(value, "name", value))
