"""``bk``: one command. Its verbs are :mod:`click` commands, our own and those of other packages.

Our own verbs are in a table; others come by entry points of the group ``bookkeeper.commands``. ``bk`` imports only the
verb that it runs, and searches the installed packages only for a verb that is not in the table. So it starts as fast
as that verb.
"""

from __future__ import annotations

import gc
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import click

from bookkeeper.admin.command_group import CommandGroup
from bookkeeper.admin.extras import EXTRAS, missing
from bookkeeper.admin.shared.terminal import harmless
from bookkeeper.errors import BookKeeperError, UnauthorizedError, in_words

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

COMMAND_GROUP = "bookkeeper.commands"

OWN: Final[Mapping[str, str]] = {
    "access": "bookkeeper.admin.access.access:access",
    "autorecovery": "bookkeeper.admin.cluster.autorecovery:autorecovery",
    "bookie": "bookkeeper.admin.bookie.bookie:bookie",
    "bookies": "bookkeeper.admin.bookies.bookies:bookies",
    "cluster": "bookkeeper.admin.cluster.cluster_status:cluster",
    "config": "bookkeeper.admin.config.config:config",
    "console": "bookkeeper.admin.servers.console:console",
    "credentials": "bookkeeper.admin.servers.credentials:credentials",
    "init": "bookkeeper.admin.cluster.init:init",
    "ledger": "bookkeeper.admin.ledger.ledgers:ledger",
    "metadata": "bookkeeper.admin.cluster.metadata:metadata",
    "standalone": "bookkeeper.admin.servers.servers:standalone",
    "zookeeper": "bookkeeper.admin.servers.servers:zookeeper",
}
"""The verbs of this package, and where they are. No other package can take such a name."""

SENTENCES: Final[Mapping[str, str]] = {
    "bookkeeper.admin.access.access:access": "Show who may do what (the default), grant and revoke rights, keep "
    "tenants and quotas, switch enforcement on and off.",
    "bookkeeper.admin.cluster.autorecovery:autorecovery": "Find under-replicated ledgers and repair them (the "
    "default), show what is being done, switch it off and on.",
    "bookkeeper.admin.bookie.bookie:bookie": "Run a bookie in the foreground (the default), command one that runs on "
    "this machine, or look at the files of one that does not.",
    "bookkeeper.admin.bookies.bookies:bookies": "List bookies (the default), say where they stand, ask how full they "
    "are and which may stop, move ledgers off them, forget them.",
    "bookkeeper.admin.cluster.cluster_status:cluster": "Show a whole cluster.",
    "bookkeeper.admin.config.config:config": "Check a bookie's settings, show them, translate Apache's.",
    "bookkeeper.admin.servers.console:console": "Show the cluster in a browser: bookies, ledgers, repairs, and the "
    "panels of other packages.",
    "bookkeeper.admin.servers.credentials:credentials": "Make and revoke what clients show to bookies: signed tokens, "
    "users of SASL.",
    "bookkeeper.admin.cluster.init:init": "Create a new cluster in its metadata store.",
    "bookkeeper.admin.ledger.ledgers:ledger": "Write, read and manage ledgers.",
    "bookkeeper.admin.cluster.metadata:metadata": "Manage a cluster's metadata.",
    "bookkeeper.admin.servers.servers:standalone": "Run everything on this machine: bookies, metadata in SQLite, the "
    "WebHDFS gateway.",
    "bookkeeper.admin.servers.servers:zookeeper": "Run ZooKeeper for development, from PySpark's jars: a single server "
    "on 127.0.0.1.",
    "journal_manager.commands:journal": "Look at edit logs and manage them.",
    "segments.commands:stream": "Write, read and manage streams of records.",
    "spark_wal.commands:gateway": "Serve files and streams of the cluster in other protocols.",
    "spark_wal.copy_command:checkpoint": "Look at checkpoints of streaming queries, compare and check them, go "
    "back, copy them.",
}
"""The first sentence of each verb's help, by its place: ``bk --help`` lists them, and loads none."""


class Verbs(CommandGroup):
    """A group whose commands are loaded when they are needed."""

    def sentence(self, name: str) -> str | None:
        place = OWN.get(name) or (found.value if (found := _verbs().get(name)) is not None else "")
        return SENTENCES.get(place)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*OWN, *_verbs()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if (place := OWN.get(cmd_name)) is not None:
            load: Callable[[], Any] = partial(_own, place)
        elif (found := _verbs().get(cmd_name)) is not None:
            place, load = found.value, found.load
        else:
            return None
        try:
            command = _loaded(load)
        except ModuleNotFoundError as exc:
            # A verb of an optional package whose libraries are missing: report that when it is used.
            return _unavailable(cmd_name, exc)
        if not isinstance(command, click.Command):
            raise TypeError(f"{place} is no click command")
        return command

    def near(self, ctx: click.Context, name: str) -> Sequence[str]:
        return super().near(ctx, name) or self._below(ctx, name)

    def _below(self, ctx: click.Context, name: str) -> list[str]:
        """Where a verb of this name is, if it belongs to a group: ``append`` of ``ledger``."""
        found = []
        for group in self.list_commands(ctx):
            command = self.get_command(ctx, group)
            if isinstance(command, click.Group) and name in command.list_commands(ctx):
                found.append(f"{ctx.command_path} {group} {name}")
        return found

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        with _end_with_reader():  # --help and --version print here
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> None:
        with _end_with_reader():
            super().invoke(ctx)  # a verb's return value is no exit status; only `Exit` sets one


@contextmanager
def _end_with_reader() -> Iterator[None]:
    """If the reader of our output has gone (``bk ... | head``), nobody can be told: the command ends with status 0."""
    try:
        yield
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise click.exceptions.Exit(0) from None


def _own(place: str) -> object:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def _loaded(load: Callable[[], Any]) -> object:
    """Import what ``load`` loads. Imports stay, so the garbage collector need not search them."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return load()
    finally:
        if collects:
            gc.enable()


def _verbs() -> dict[str, EntryPoint]:
    """The verbs of other packages. This searches all installed packages."""
    from importlib.metadata import entry_points  # it imports the e-mail library, a tenth of a bookie's imports

    return {entry.name: entry for entry in entry_points(group=COMMAND_GROUP)}


def _unavailable(name: str, cause: ModuleNotFoundError) -> click.Command:
    def refuse() -> None:
        raise click.ClickException(f"bk {name} {missing(cause)}")

    return click.Command(name, callback=refuse, help=f"Not available: this command {missing(cause)}.")


@click.group(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Where a command takes --metadata, it also reads the environment variable BK_METADATA. Commands and options "
    'are completed after: eval "$(_BK_COMPLETE=bash_source bk)" (or zsh_source).',
)
@click.version_option(package_name="bookkeeper-py", prog_name="bk", message="%(prog)s %(version)s")
def bk() -> None:
    """Run and manage a BookKeeper cluster.

    \b
    Try it on this machine:
      bk standalone --dir /tmp/bk
      export BK_METADATA=sqlite:///tmp/bk/metadata.db
      seq 1000 | bk ledger append
      bk ledger read 0
    """


def main() -> None:
    """The command. Our errors end it with one sentence and status 1, without a traceback.

    gRPC's own lines, which say the same in other words before our sentence, are off unless GRPC_VERBOSITY is set.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        # Its name is always `bk`. Click returns the status of an `Exit` instead of raising it.
        if status := bk(prog_name="bk", standalone_mode=False):
            sys.exit(status)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)  # the help alone, not below the words of a mistake
        sys.exit(error.exit_code)
    except click.UsageError as error:
        said = error.format_message()
        if isinstance(error, click.NoSuchOption) and (word := _below_zero(error.option_name)):
            said = f"{word} is below 0, and there is no such number here"
        if error.ctx is not None:
            click.echo(f"{error.ctx.get_usage()}\nTry '{error.ctx.command_path} --help' for help.\n", err=True)
        click.echo(f"bk: {said}", err=True)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        click.echo(f"bk: {error.format_message()}", err=True)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt) as error:
        if type(error.__context__) is EOFError:  # a question, and nobody who could answer it
            click.echo("\nbk: the question got no answer: standard input has ended", err=True)
        sys.exit(130)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in EXTRAS or os.environ.get("BK_TRACEBACK"):
            raise
        click.echo(f"bk: this {missing(error)}", err=True)
        sys.exit(1)
    except (BookKeeperError, OSError) as error:
        if os.environ.get("BK_TRACEBACK"):
            raise
        click.echo(f"bk: {explain(error)}", err=True)
        sys.exit(1)


def _below_zero(option: str) -> str | None:
    """The number on the command line that was taken for an option."""
    words = (word for word in sys.argv[1:] if word.startswith(option) and re.fullmatch(r"-\d+(\.\d+)?", word))
    return next(words, None)


def explain(error: BaseException) -> str:
    """One sentence for people: what happened, what the verb has noted about it, and whether trying again may help."""
    text = in_words(error)
    notes = list(getattr(error, "__notes__", ()))
    if isinstance(error, UnauthorizedError):
        notes.append("give the ledger's password with --password-file or BK_PASSWORD")
    if isinstance(error, BookKeeperError) and error.retryable:
        notes.append("trying again may help")
    return harmless(f"{text} ({'; '.join(notes)})" if notes else text)
