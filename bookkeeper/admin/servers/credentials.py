"""``bk credentials``: makes and revokes what clients show to bookies. It writes files, and asks no server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import click

from bookkeeper.admin.command_group import CommandGroup
from bookkeeper.auth.token_file import TokenFile, revoked_line, signing_key_line
from bookkeeper.errors import ConfigError, in_words
from bookkeeper.real import SystemClock, SystemRng, append_private, read_private, replace_private
from bookkeeper.secret import Secret

_FILE: Final = click.Path(dir_okay=False)
_DURATION: Final = re.compile(r"([1-9][0-9]{0,5})([mhd])")
_SECONDS: Final = {"m": 60, "h": 3600, "d": 86_400}

_token_file = click.option(
    "--token-file",
    required=True,
    type=_FILE,
    help="The private file of keys and tokens, which bookies and gateways read.",
)
_roles = click.option("--role", "roles", multiple=True, metavar="ROLE", help="A role of this name. May be repeated.")


class _Duration(click.ParamType):  # type: ignore[type-arg]  # older versions of the library have no arguments
    """``30m``, ``12h``, ``90d``: in seconds."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        found = _DURATION.fullmatch(str(value))
        if found is None:
            self.fail(f"{value!r} is no time: write 30m, 12h or 90d", param, ctx)
        return int(found[1]) * _SECONDS[found[2]]


@click.group(cls=CommandGroup)
def credentials() -> None:
    """Make and revoke what clients show to bookies: signed tokens, users of SASL.

    The files are private (mode 0600). Bookies notice changes by themselves.
    """


@credentials.command("signing-key")
@click.argument("name")
@_token_file
def signing_key(name: str, token_file: str) -> None:
    """Add a new key called NAME to the file, which is made if it does not exist.

    New tokens are signed with the newest key; older tokens stay good. Put the file on every bookie before you make
    tokens with the key. To end all tokens of a key, remove its line.
    """
    with _reported_errors():
        if name in _book(token_file).signing.keys:
            raise ConfigError(f"{token_file} has a key of this name: take another name")
        append_private(token_file, signing_key_line(name))


@credentials.command()
@click.argument("name")
@_token_file
@click.option("--valid", "valid_s", type=_Duration(), required=True, metavar="TIME", help="For how long: 12h, 30d.")
@_roles
@click.option("--key", metavar="NAME", help="The key that signs it.  [default: the newest]")
def token(name: str, token_file: str, valid_s: int, roles: tuple[str, ...], key: str | None) -> None:
    """Print a signed token for NAME, once. The file stays as it is.

    Whoever has the token is NAME to every bookie that has the key, until the token ends.
    """
    from bookkeeper.auth.signed_tokens import issue

    with _reported_errors():
        end = SystemClock().wall_ms() // 1000 + valid_s
        click.echo(issue(_book(token_file), name, SystemRng().getrandbits(64), end=end, roles=roles, key=key).reveal())


@credentials.command()
@click.argument("what", metavar="ID|principal:NAME")
@_token_file
def revoke(what: str, token_file: str) -> None:
    """Revoke a token by its ID (the third part of it), or with principal:NAME all tokens of a name.

    Connections that were made with it end within the interval in which bookies look for changes.
    """
    with _reported_errors():
        if what in _book(token_file).revoked:
            raise ConfigError(f"{what} is revoked already")
        append_private(token_file, revoked_line(what))


@credentials.command("sasl-user")
@click.argument("name")
@click.option("--user-file", required=True, type=_FILE, help="The private file of users; made if it does not exist.")
@click.option(
    "--password-file", type=_FILE, help="A private file with the password. Without it the password is asked for."
)
@_roles
@click.option("--replace", is_flag=True, help="Replace the password and roles of an existing user.")
def sasl_user(name: str, user_file: str, password_file: str | None, roles: tuple[str, ...], replace: bool) -> None:
    """Add the user NAME to the file of users for SASL DIGEST-MD5, with what is kept of a password.

    To remove a user, remove the line. DIGEST-MD5 is obsolete: use it for clients that know nothing better.
    """
    from bookkeeper.auth.sasl.users import parse_users, user_line

    with _reported_errors():
        text = _text(user_file)
        if name in parse_users(text, user_file) and not replace:
            raise ConfigError(f"{user_file} has this user: use --replace to set another password")
        kept = "".join(line for line in text.splitlines(keepends=True) if line.split()[:2] != ["user", name])
        kept += "" if not kept or kept.endswith("\n") else "\n"
        replace_private(user_file, kept + user_line(name, _password(password_file), roles))


def _password(path: str | None) -> Secret:
    if path is None:
        return Secret(click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
    return Secret(read_private(path).decode().removesuffix("\n"))


def _book(path: str) -> TokenFile:
    return TokenFile.parse(_text(path), path)


def _text(path: str) -> str:
    try:
        return read_private(path).decode()
    except FileNotFoundError:
        return ""


@contextmanager
def _reported_errors() -> Iterator[None]:
    """Report errors of files as errors of this command."""
    try:
        yield
    except (OSError, UnicodeDecodeError, ConfigError) as error:
        raise click.ClickException(in_words(error)) from error
