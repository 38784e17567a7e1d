"""The verbs of ``bk gateway`` for the file of tokens."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import click

from bookkeeper.auth.token_file import signing_key_line
from bookkeeper.errors import ConfigError, in_words
from bookkeeper.gateways.caller import EVERYWHERE
from bookkeeper.gateways.command_options import FILE
from bookkeeper.gateways.tokens import TokenBook, end_text, new_token, token_line, without_tokens
from bookkeeper.option_types import Number
from bookkeeper.real import SystemClock, append_private, exchange_private, read_private

DAY_S: Final = 24 * 3600
DAYS_MAX: Final = 36_500

_token_file = click.option(
    "--token-file", required=True, type=FILE, help="The file of tokens. Give it to every gateway."
)


@click.command()
@click.argument("name")
@click.option(
    "--token-file",
    required=True,
    type=FILE,
    help="The file of tokens; it is made if it does not exist. Give it to every gateway.",
)
@click.option(
    "--root",
    "roots",
    multiple=True,
    metavar="/PATH",
    help="The token is valid for the files below this path and the streams of this name only; paths:/PATH and "
    "streams:NAME mean one of the two. May be repeated.",
)
@click.option("--read-only", is_flag=True, help="The token is valid for reading only.")
@click.option(
    "--days",
    type=Number(min=0, min_open=True, max=DAYS_MAX),
    metavar="DAYS",
    help="The token ends after so many days.  [default: never]",
)
def token(name: str, token_file: str, roots: tuple[str, ...], read_only: bool, days: float | None) -> None:
    """Make a token for NAME, print it once, and add its hash to the file.

    Running gateways notice it by themselves. NAME becomes the owner of files that are made with it, and is the client
    id for OAuth2. Earlier releases refuse a file with a token that ends, or whose limits are other than paths.
    """
    made = new_token()
    with _reported_errors():
        end_s = None if days is None else int(SystemClock().wall_ms() / 1000 + days * DAY_S)
        line = token_line(name, made, roots, read_only=read_only, end_s=end_s)
        key = signing_key_line(_key_name())

        def changed(text: str) -> str:
            can_sign = TokenBook.parse(text, token_file).can_sign
            return text + ("" if text.endswith("\n") or not text else "\n") + ("" if can_sign else key) + line

        if os.path.lexists(token_file):
            _change(token_file, changed)
        else:
            append_private(token_file, key + line)
    click.echo(made.reveal())


@click.command()
@_token_file
def tokens(token_file: str) -> None:
    """List the tokens of a file: their ids, owners, limits and ends.

    After them come the signing keys, the one that signs first. The file holds no token, so none is shown. An id is no
    secret.
    """
    with _reported_errors():
        book = _book(token_file)
    now_ms = SystemClock().wall_ms()
    for each in book:
        end = "never ends" if each.end_s is None else f"ends {end_text(each.end_s)}"
        ended = "has ended: " if each.has_ended(now_ms) else ""
        limits = "everything" if each.caller.roots == (EVERYWHERE,) else each.caller.limits()
        click.echo(f"{each.id}  {each.caller.name}  {ended}{end}  {limits}")
    for key in book.keys:
        click.echo(f"signing key {key}")


@click.command("revoke-token")
@click.argument("which", metavar="ID|NAME...", nargs=-1, required=True)
@_token_file
def revoke_token(which: tuple[str, ...], token_file: str) -> None:
    """Take tokens out of the file: by their ids, or by their owner's name.

    Access tokens that were made from them are good no more either. Running gateways read the file again within their
    --reload-s, or at once after SIGHUP, and end what is under way.
    """

    def changed(text: str) -> str:
        book = TokenBook.parse(text, token_file)
        found = {each.id: each.caller.name for each in book if each.id in which or each.caller.name in which}
        missing = [each for each in which if each not in found and each not in found.values()]
        if missing:
            raise ConfigError(
                f"{token_file} has no token {', '.join(missing)}: nothing was revoked; bk gateway tokens lists them"
            )
        for token_id, name in found.items():
            click.echo(f"revoked {token_id}  {name}")
        return without_tokens(text, frozenset(found))

    with _reported_errors():
        _change(token_file, changed)


@click.command("new-signing-key")
@_token_file
@click.option("--drop-others", is_flag=True, help="Remove the older keys: what they have signed is good no more.")
def new_signing_key(token_file: str, drop_others: bool) -> None:
    """Put a new signing key before the others: it signs access tokens from now on.

    What older keys have signed stays good until it ends, an hour at most. An hour later the same with --drop-others
    takes them away, together with the one that was made here. Tokens of bk gateway token are not signed, and stay;
    tokens for bookies that a dropped key has signed (bk credentials) are good no more.
    """

    def changed(text: str) -> str:
        TokenBook.parse(text, token_file)
        name = _key_name()
        click.echo(f"signing key {name}")
        kept = text if not drop_others else "".join(_without_keys(text))
        return signing_key_line(name) + kept

    with _reported_errors():
        _change(token_file, changed)


def _without_keys(text: str) -> Iterator[str]:
    for line in text.splitlines(keepends=True):
        if line.split()[:1] != ["signing-key"]:
            yield line


def _change(path: str, changed: Callable[[str], str]) -> None:
    """Exchange the file for a changed one. Raises: ConfigError, OSError."""
    exchange_private(path, changed)


def _book(path: str) -> TokenBook:
    return TokenBook.parse(read_private(path).decode("utf-8", "replace"), path)


def _key_name() -> str:
    return f"k{secrets.token_hex(4)}"


@contextmanager
def _reported_errors() -> Iterator[None]:
    """Report what is wrong with the file, or with the arguments, as an error of this command."""
    try:
        yield
    except (ConfigError, OSError) as error:
        raise click.ClickException(in_words(error)) from error
