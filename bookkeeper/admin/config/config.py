"""``bk config``: checks a bookie's settings, shows them with where each comes from, translates those of Apache's."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from bookkeeper.admin.command_group import CommandGroup
from bookkeeper.admin.config.apache_properties import parse_properties
from bookkeeper.admin.config.apache_settings import SettingKind, Translation, translate
from bookkeeper.admin.config.effective_settings import EffectiveSetting, effective_settings
from bookkeeper.admin.config.toml_text import toml_text
from bookkeeper.admin.shared.options import json_option, print_json, print_table
from bookkeeper.amounts import counted
from bookkeeper.bookie.command import bookie_options, config_of, settings_given
from bookkeeper.bookie.config import BookieConfig, config_from, read_toml
from bookkeeper.errors import ConfigError, in_words
from bookkeeper.secret import without_secrets

_PROPERTIES: Final = (".conf", ".properties")
_VARIABLES: Final = {"metadata_uri": "BK_METADATA", "metadata_session_s": "BK_METADATA_SESSION"}
"""Settings that the environment can say."""


@click.group(cls=CommandGroup)
def config() -> None:
    """Check a bookie's settings, show them, translate Apache's."""


_file_argument = click.argument("file", required=False, type=click.Path(dir_okay=False), metavar="[FILE]")


@config.command()
@_file_argument
@bookie_options
@json_option
def check(file: str | None, as_json: bool, **options: Any) -> None:
    """Check the settings of a bookie, from its FILE, its options, or both, without starting it.

    The options are those of `bk bookie`. An unknown setting, a wrong value, settings that do not fit together, and
    files that are named and cannot be read are refused. A reserve that may not suffice on a full disk is a warning.
    FILE may also be Apache's bk_server.conf; give --dir then.
    """
    if file is not None and file.endswith(_PROPERTIES):
        _check_apache(file, options, as_json)
        return
    found = _settings(file, options)
    problems = _unreadable(found[0])
    if problems:
        raise click.ClickException("; ".join(problems))
    changed = [each for each in found[1] if each.source != "default"]
    warnings = [problem] if (problem := found[0].storage.reserve_problem()) else []
    if as_json:
        print_json({"good": True, "warnings": warnings, "settings": {each.name: each.value for each in found[1]}})
        return
    click.echo(f"these settings are good: {counted(len(changed), 'setting')} given, {len(found[1])} in all")
    for warning in warnings:
        click.echo(f"warning: {warning}")


@config.command()
@_file_argument
@bookie_options
@json_option
def show(file: str | None, as_json: bool, **options: Any) -> None:
    """Show every setting that a bookie would have, and where it comes from.

    The options are those of `bk bookie`. Options of authentication are not shown.
    """
    _, found = _settings(file, options)
    rows = [{"setting": each.name, "value": each.value, "from": each.source} for each in found]
    if as_json:
        print_json(rows)
        return
    print_table(counted(len(rows), "setting"), ["setting", "value", "from"], rows)


@config.command("import")
@click.argument("file", type=click.Path(dir_okay=False), metavar="bk_server.conf")
@click.option(
    "--dir", "directory", metavar="DIR", required=True, help="The directory of the new bookie's identity; it is empty."
)
@click.option("--write", "target", metavar="FILE", help="Write the settings into this new TOML file.")
@click.option("--leave-out", multiple=True, metavar="NAME", help="Leave this refused setting out. May be repeated.")
@click.option(
    "--insecure",
    is_flag=True,
    help="Serve beyond loopback without encryption and authentication, as Apache's bookies do by default.",
)
@json_option
def import_(
    file: str, directory: str, target: str | None, leave_out: tuple[str, ...], insecure: bool, as_json: bool
) -> None:
    """Translate the settings of an Apache bookie, its bk_server.conf.

    Each setting is translated, means nothing here (the reason is told), or is refused by name. With a refused one the
    exit status is 1, and nothing is written. Directories become new ones beside the old: a bookie never uses files of
    Apache's; docs/production.md says how to move.
    """
    found = _translated(file, directory)
    unknown = [name for name in leave_out if name not in {each.name for each in found.fates}]
    if unknown:
        raise click.UsageError(f"--leave-out: {file} has no {', '.join(unknown)}")
    if insecure:
        found.options["insecure"] = True
    refused = found.refused(leave_out)
    text = toml_text(found.options)
    if as_json:
        rows = [
            {"setting": each.name, "value": _own(each.name, each.value), "fate": str(each.fate), "text": each.text}
            for each in found.fates
        ]
        print_json({"settings": rows, "options": found.options, "autorecovery": found.autorecovery})
    else:
        _print(found, text)
    if refused:
        raise click.ClickException(
            f"{counted(len(refused), 'setting')} of {file} cannot be kept: "
            f"{', '.join(each.name for each in refused)}; change them, or give --leave-out with each"
        )
    _require_good(file, found)
    if target is not None:
        _write_new(target, text)
        if not as_json:
            click.echo(f"written: {target}; bk config check {target}, then bk bookie --config {target}")


def _settings(file: str | None, options: dict[str, Any]) -> tuple[BookieConfig, list[EffectiveSetting]]:
    """The settings that options and file make, and all of them with their sources."""
    path = options.pop("path")
    if file is not None and path is not None:
        raise click.UsageError("name the file once: as FILE, or with --config")
    path = file or path
    variables = {
        name: variable
        for name, variable in _VARIABLES.items()
        if click.get_current_context().get_parameter_source(name) is ParameterSource.ENVIRONMENT
    }
    port, ledger_dirs, journal_dirs = (options.pop(name) for name in ("port", "ledger_dirs", "journal_dirs"))
    given = settings_given(port, ledger_dirs, journal_dirs, options)
    made = config_of(path, given)
    in_file = read_toml(path) if path is not None else {}
    return made, effective_settings(made, given=given, variables=variables, in_file=in_file, file=path)


def _unreadable(made: BookieConfig) -> list[str]:
    """A sentence for each file that is named and cannot be read."""
    named = {
        "tls.cert": made.tls.cert,
        "tls.key": made.tls.key,
        "tls.client_ca": made.tls.client_ca,
        "http_api.token_file": made.http_api.token_file,
        "http_api.tls_cert": made.http_api.tls_cert,
        "http_api.tls_key": made.http_api.tls_key,
        "auth.options.file": made.auth.options.get("file"),
    }
    found = []
    for name, path in named.items():
        if path is not None:
            try:
                with open(path, "rb"):
                    pass
            except OSError as error:
                found.append(f"{name}: {in_words(error)}")
    return found


def _check_apache(file: str, options: dict[str, Any], as_json: bool) -> None:
    given = {name: value for name, value in options.items() if value not in (None, ())}
    directory = given.pop("directory", None)
    insecure = given.pop("insecure", False)
    for name in _VARIABLES:
        if click.get_current_context().get_parameter_source(name) is ParameterSource.ENVIRONMENT:
            given.pop(name, None)
    if directory is None or given:
        raise click.UsageError(f"{file} is Apache's: give --dir DIR (and --insecure) beside it, and nothing else")
    found = _translated(file, directory)
    if insecure:
        found.options["insecure"] = True
    if refused := found.refused():
        raise click.ClickException(f"{file}: " + "; ".join(f"{each.name}: {each.text}" for each in refused))
    _require_good(file, found)
    if as_json:
        print_json({"good": True, "settings": found.options})
    else:
        click.echo(f"these settings of Apache's have a translation: bk config import {file} --dir {directory}")


def _translated(file: str, directory: str) -> Translation:
    try:
        text = Path(file).read_text()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file} is no text") from error
    try:
        return translate(parse_properties(text), directory=os.path.abspath(directory))
    except ConfigError as error:
        raise ConfigError(f"{file}: {error}") from error


def _require_good(file: str, found: Translation) -> None:
    """Refuse settings with which no bookie starts. Raises: ConfigError: what is wrong."""
    if "metadata_uri" not in found.options:
        raise ConfigError(f"{file} does not name the metadata store: it needs metadataServiceUri or zkServers")
    try:
        config_from(found.options)
    except ConfigError as error:
        raise ConfigError(f"what {file} says is refused here: {error}") from error


def _own(name: str, value: str) -> str:
    """A value as it may be shown."""
    if "passw" in name.lower() and "path" not in name.lower():
        return "(not shown)"
    return without_secrets(value) if "://" in value else value


def _print(found: Translation, text: str) -> None:
    for fate in (SettingKind.TRANSLATED, SettingKind.REFUSED):
        rows = [
            {"setting": each.name, "value": _own(each.name, each.value), "here": each.text}
            for each in found.fates
            if each.fate is fate
        ]
        if rows:
            print_table(f"{counted(len(rows), 'setting')} {fate}", ["setting", "value", "here"], rows)
    reasons: dict[str, list[str]] = {}
    for each in found.fates:
        if each.fate is SettingKind.NOTED:
            reasons.setdefault(each.text, []).append(each.name)
    for reason, names in reasons.items():
        click.echo(f"meaningless here, because {reason}: {', '.join(names)}")
    if found.autorecovery:
        click.echo(f"autorecovery, as a process of its own: bk autorecovery {' '.join(found.autorecovery)}")
    click.echo(text, nl=False)


def _write_new(target: str, text: str) -> None:
    try:
        with open(target, "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise click.ClickException(f"{target} exists, and is left as it is: name a new file") from None
