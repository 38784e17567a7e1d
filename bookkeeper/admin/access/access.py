"""``bk access``: lists the access policy, grants and revokes, and says who may do what. Which module has which other
verb is said by :mod:`bookkeeper.admin.access`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from bookkeeper.access import Decision, Grant, Mode, Policy, Principal, PrincipalKind, Resource, Right, Subject
from bookkeeper.access.ownership import checked_owner
from bookkeeper.access.policy_format import grant_document, policy_document
from bookkeeper.access.rights import parse_rights
from bookkeeper.admin.access.matches import unmatched
from bookkeeper.admin.access.modes import enforce, observe, off
from bookkeeper.admin.access.policy_change import change_policy, mode_in_words, note_change, read_policy
from bookkeeper.admin.access.tenants import quota, tenant
from bookkeeper.admin.access.usage import usage
from bookkeeper.admin.command_group import DefaultCommandGroup
from bookkeeper.admin.shared.answers import VerbAnswer, verb_on_cluster
from bookkeeper.admin.shared.options import LedgerIdType, moment, print_table
from bookkeeper.amounts import counted
from bookkeeper.errors import ConfigError, NoSuchLedgerError
from bookkeeper.ids import LedgerId, some_of

if TYPE_CHECKING:
    from bookkeeper import BookKeeper
    from bookkeeper.meta import Metadata
    from bookkeeper.meta.records.access_servers import AccessReport


_SHOWN: Final = 10
"""Ledgers that an error names at most."""


@click.command("hand-over")
@verb_on_cluster(changes=True)
@click.argument("owner")
@click.argument("ledgers", nargs=-1, required=True, type=LedgerIdType(0), metavar="LEDGER...")
async def hand_over(bk: BookKeeper, owner: str, ledgers: tuple[int, ...]) -> VerbAnswer:
    """Make OWNER the owner of ledgers, whoever owned them before: ledgers:NAME, streams:NAME, journals:NAME or
    paths:/PATH.

    For ledgers that name no owner and were there before anybody was asked, for those of a stream that was renamed, and
    for those of somebody who has left. Bookies learn of it within a minute, and keep it.
    """
    wanted = checked_owner(owner)
    metadata, numbers = bk.metadata_store, [LedgerId(ledger) for ledger in ledgers]
    if missing := await _missing(metadata, numbers):
        raise NoSuchLedgerError(f"nothing was changed: there is no ledger {some_of(missing, _SHOWN)}")
    before = await metadata.ledger_owners.handed_over()
    restorable = metadata.ledgers.restorable  # who brings one back finds the owner that it has now
    gone = [each for each in await _missing(metadata, list(before)) if not await restorable.has(each, fresh=True)]
    await metadata.ledger_owners.hand_over(numbers, wanted, gone)
    await note_change(metadata, f"hand-over {wanted} {some_of(numbers, _SHOWN)}")
    document = {"owner": str(wanted), "ledgers": numbers}
    return VerbAnswer(document, f"{counted(len(numbers), 'ledger')} handed over to {wanted}")


async def _missing(metadata: Metadata, ledgers: Sequence[LedgerId]) -> list[LedgerId]:
    """Those of these ledgers that do not exist."""
    missing = []
    for ledger in ledgers:
        try:
            await metadata.ledgers.read(ledger)
        except NoSuchLedgerError:
            missing.append(ledger)
    return missing


_HISTORY: Final = 10
"""Changes that people are shown."""


@click.group(cls=DefaultCommandGroup, default="list")
def access() -> None:
    """Show who may do what (the default), grant and revoke rights, keep tenants and quotas, switch enforcement on and
    off."""


@access.command("list")
@verb_on_cluster()
async def list_(bk: BookKeeper) -> VerbAnswer:
    """Show the access policy: its mode, grants, tenants and quotas, the last changes, and which servers follow it."""
    metadata = bk.metadata_store
    policy = await read_policy(metadata)
    reports = await metadata.access_servers.reports()
    registered = await metadata.bookies.registered()
    silent = await metadata.access_servers.without_report(sorted(registered))
    document = {
        **policy_document(policy),
        "servers": [_server(each, policy) for each in reports],
        "bookies_that_do_not_follow": silent,
    }
    return VerbAnswer(document, lambda: _print(policy, document))


def _server(report: AccessReport, policy: Policy) -> dict[str, Any]:
    newest = policy.changes[-1].at_ms if policy.changes else 0
    return {
        "server": f"{report.kind} {report.name}",
        "mode": report.mode.value,
        "copy": report.state,
        "up_to_date": report.changed_ms == newest,
    }


def _print(policy: Policy, document: dict[str, Any]) -> None:
    click.echo(f"mode {mode_in_words(policy)}")
    rows = [{**each, "rights": ",".join(each["rights"])} for each in document["grants"]]
    print_table(counted(len(rows), "grant"), ["who", "rights", "on"], rows)
    if policy.tenants:
        told = [
            {**each, "quota": str(one.quota)} for each, one in zip(document["tenants"], policy.tenants, strict=True)
        ]
        print_table(counted(len(told), "tenant"), ["name", "members", "owns", "quota"], told)
    if policy.quotas:
        limits = [{"who": str(each.who), "quota": str(each.quota)} for each in policy.quotas]
        print_table("quotas of principals", ["who", "quota"], limits)
    if policy.changes:
        notes = [{"when": moment(each.at_ms), "by": each.by, "what": each.what} for each in policy.changes[-_HISTORY:]]
        print_table("last changes", ["when", "by", "what"], notes)
    if document["servers"]:
        print_table("servers", ["server", "mode", "copy", "up_to_date"], document["servers"])
    if policy.mode is not Mode.OFF and document["bookies_that_do_not_follow"]:
        names = ", ".join(document["bookies_that_do_not_follow"])
        click.echo(f"NOT ENFORCED by {names}: Java's, or of an earlier version")


@access.command()
@verb_on_cluster(changes=True)
@click.argument("who")
@click.argument("rights")
@click.argument("on")
async def grant(bk: BookKeeper, who: str, rights: str, on: str) -> VerbAnswer:
    """Grant WHO the RIGHTS on ON, and on all below it. It counts within 5 s.

    \b
    WHO     a principal's name; role:ROLE; tenant:TENANT; certificate:, token:, sasl: or provider:NAME; anyone
    RIGHTS  append, read, recover, repair, create, delete, administer: one, or several with commas
    ON      streams:NAME, journals:NAME, paths:/PATH, ledgers:OWNER ("/" alone: all of the kind), or cluster

    There are no wildcards: streams:app covers app and app/x, and not apple. No right includes another one.
    """
    wanted = Grant(Subject.parse(who), parse_rights(rights), Resource.parse(on))
    policy = await change_policy(bk.metadata_store, f"grant {wanted}", lambda policy: policy.with_grant(wanted))
    notes = await unmatched(bk.metadata_store, policy, wanted)
    if policy.mode is not Mode.ENFORCE:
        notes.append(f"the policy's mode is {policy.mode}: nothing is denied to anybody")
    return VerbAnswer(
        {"granted": grant_document(wanted), "mode": policy.mode.value, "notes": notes},
        "\n".join([f"granted: {wanted}", *(f"note: {each}" for each in notes)]),
    )


@access.command()
@verb_on_cluster(changes=True)
@click.argument("who")
@click.argument("rights")
@click.argument("on")
async def revoke(bk: BookKeeper, who: str, rights: str, on: str) -> VerbAnswer:
    """Take RIGHTS on exactly ON back from exactly WHO. It counts within 5 s.

    What other grants give, higher up or to a role, stays; `bk access check` shows it.
    """
    unwanted = Grant(Subject.parse(who), parse_rights(rights), Resource.parse(on))

    def alter(policy: Policy) -> Policy:
        has = next((each for each in policy.grants if (each.who, each.on) == (unwanted.who, unwanted.on)), None)
        if has is None or not unwanted.rights <= has.rights:
            there = f"there is: {has}" if has is not None else "`bk access list` shows all"
            raise ConfigError(f"there is no grant {unwanted}, and nothing was changed; {there}")
        return policy.without_rights(unwanted)

    policy = await change_policy(bk.metadata_store, f"revoke {unwanted}", alter)
    return VerbAnswer({"revoked": grant_document(unwanted), "mode": policy.mode.value}, f"revoked: {unwanted}")


@access.command()
@verb_on_cluster()
@click.option("--role", "roles", multiple=True, metavar="ROLE", help="A role that WHO has; may be repeated.")
@click.argument("who")
@click.argument("right", type=click.Choice([right.value for right in Right]))
@click.argument("on")
async def check(bk: BookKeeper, who: str, right: str, on: str, roles: tuple[str, ...]) -> VerbAnswer:
    """Say whether WHO has the RIGHT on ON, and which grant decides. Exit status 0: yes, 1: no.

    WHO is a name, or certificate:NAME, token:NAME, sasl:NAME, provider:NAME. For a name alone it is yes only if it is
    yes however the name was shown.
    """
    policy = await read_policy(bk.metadata_store)
    wanted, resource = Right(right), Resource.parse(on)
    decisions = [(each, policy.decide(each, wanted, resource)) for each in _principals(who, roles)]
    allowed = all(decision.allowed for _, decision in decisions)
    document = {
        "who": who,
        "right": right,
        "on": on,
        "allowed": allowed,
        "mode": policy.mode.value,
        "enforced": policy.mode is Mode.ENFORCE,
        "reasons": {each.kind.value: decision.reason for each, decision in decisions},
    }
    return VerbAnswer(document, "\n".join(_answers(policy, decisions, allowed)), is_good=allowed)


def _principals(who: str, roles: tuple[str, ...]) -> list[Principal]:
    """Whom WHO may be: one for each way in which a name is shown.

    Raises:
        ConfigError: it is no principal's name.
    """
    subject = Subject.parse(who)
    shown = [kind for kind in PrincipalKind if kind is not PrincipalKind.NOBODY]
    if subject.kind in (kind.value for kind in shown):
        return [Principal(PrincipalKind(subject.kind), subject.name, roles)]
    if subject.kind == "name":
        return [Principal(kind, subject.name, roles) for kind in shown]
    if subject.kind == "anyone":
        return [Principal(PrincipalKind.NOBODY, "", roles)]
    raise ConfigError(f"{who} is not a principal: give a name, with --role {subject.name} if it has the role")


def _answers(policy: Policy, decisions: list[tuple[Principal, Decision]], allowed: bool) -> list[str]:
    reasons = {decision.reason for _, decision in decisions}
    word = "yes" if allowed else "no"
    if len(reasons) == 1:
        said = [f"{word}: {reasons.pop()}"]
    else:
        said = [f"{word}: it depends on how the name is shown" if not allowed else "yes"]
        said += [f"  {each.kind}: {'yes' if found.allowed else 'no'}: {found.reason}" for each, found in decisions]
    if policy.mode is not Mode.ENFORCE:
        said.append(f"the policy's mode is {policy.mode}: nothing is denied to anybody")
    return said


for verb in (observe, enforce, off, tenant, quota, usage, hand_over):
    access.add_command(verb)
