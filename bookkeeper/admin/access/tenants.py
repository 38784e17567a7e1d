"""``bk access tenant`` and ``bk access quota``: who belongs together, what they own, and how much of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import click

from bookkeeper.access import Grant, Policy, PrincipalQuota, Quota, QuotaKind, Resource, Subject, Tenant
from bookkeeper.access.policy_format import grant_document, tenant_document
from bookkeeper.access.principal import TENANT
from bookkeeper.admin.access.matches import names_of
from bookkeeper.admin.access.policy_change import change_policy, read_policy
from bookkeeper.admin.command_group import DefaultCommandGroup
from bookkeeper.admin.shared.answers import VerbAnswer, verb_on_cluster
from bookkeeper.admin.shared.options import print_json, print_table
from bookkeeper.amounts import counted
from bookkeeper.errors import ConfigError

if TYPE_CHECKING:
    from bookkeeper import BookKeeper
    from bookkeeper.meta import Metadata


@click.group(cls=DefaultCommandGroup, default="list")
def tenant() -> None:
    """List tenants (the default), make and change them, export, hand over, delete."""


@tenant.command("list")
@verb_on_cluster()
async def list_(bk: BookKeeper) -> VerbAnswer:
    """List the tenants: their members, what they own, their quotas."""
    policy = await read_policy(bk.metadata_store)
    return VerbAnswer([tenant_document(each) for each in policy.tenants], lambda: print_tenants(policy))


def print_tenants(policy: Policy) -> None:
    """The table of all tenants, for people."""
    rows = [{**tenant_document(each), "quota": str(each.quota)} for each in policy.tenants]
    print_table(counted(len(rows), "tenant"), ["name", "members", "owns", "quota"], rows)


@tenant.command("set")
@verb_on_cluster(changes=True)
@click.argument("name")
@click.option("--member", "members", multiple=True, metavar="WHO", help="A principal or role that belongs to it.")
@click.option("--no-member", "left", multiple=True, metavar="WHO", help="A principal or role to remove from it.")
@click.option(
    "--owns", multiple=True, metavar="ON", help="What it owns, with all below: streams:NAME, ledgers:OWNER ..."
)
@click.option("--disowns", multiple=True, metavar="ON", help="What it owns no more.")
@click.option(
    "--quota",
    "limits",
    multiple=True,
    metavar="KIND=LIMIT",
    help="bytes_kept, ledgers, streams, adds_per_s or bytes_per_s, as bytes_kept=10G; none takes a limit away.",
)
async def set_(
    bk: BookKeeper,
    name: str,
    members: tuple[str, ...],
    left: tuple[str, ...],
    owns: tuple[str, ...],
    disowns: tuple[str, ...],
    limits: tuple[str, ...],
) -> VerbAnswer:
    """Make the tenant NAME, or change it. What is not named stays as it is. It counts within 5 s.

    Its members append, read, recover, create and delete what it owns, without any grant; nobody else does.
    """
    add, drop = [Subject.parse(each) for each in members], [Subject.parse(each) for each in left]
    own, disown = [Resource.parse(each) for each in owns], [Resource.parse(each) for each in disowns]

    def alter(policy: Policy) -> Policy:
        before = policy.tenant(name) or Tenant(name)
        _require_there(name, "member", drop, before.members)
        _require_there(name, "possession", disown, before.owns)
        after = Tenant(
            name,
            _changed(before.members, add, drop),
            _changed(before.owns, own, disown),
            changed_quota(before.quota, limits),
        )
        return with_tenant(policy, after)

    given = (("member", members), ("no-member", left), ("owns", owns), ("disowns", disowns), ("quota", limits))
    words = [f"--{option} {each}" for option, values in given for each in values]
    policy = await change_policy(bk.metadata_store, " ".join([f"tenant set {name}", *words]), alter)
    made = policy.tenant(name)
    assert made is not None
    return VerbAnswer(
        tenant_document(made),
        f"tenant {name}: {counted(len(made.members), 'member')}, {counted(len(made.owns), 'possession')}, {made.quota}",
    )


def _require_there(name: str, what: str, gone: Sequence[object], there: Sequence[object]) -> None:
    for each in gone:
        if each not in there:
            raise ConfigError(f"{each} is not a {what} of the tenant {name}, and nothing was changed")


def _changed(before: tuple[Any, ...], more: Sequence[Any], less: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(each for each in dict.fromkeys([*before, *more]) if each not in less)


def with_tenant(policy: Policy, changed: Tenant) -> Policy:
    """The policy with a tenant made, or replaced at its place."""
    if policy.tenant(changed.name) is None:
        return replace(policy, tenants=(*policy.tenants, changed))
    return replace(policy, tenants=tuple(changed if each.name == changed.name else each for each in policy.tenants))


def required(policy: Policy, name: str) -> Tenant:
    """The tenant of this name. Raises: ConfigError."""
    found = policy.tenant(name)
    if found is None:
        known = ", ".join(each.name for each in policy.tenants) or "there are none"
        raise ConfigError(f"there is no tenant {name} ({known})")
    return found


def _about(policy: Policy, found: Tenant) -> list[Grant]:
    """Grants to a tenant, and to others on what it owns."""
    return [
        grant
        for grant in policy.grants
        if (grant.who.kind, grant.who.name) == (TENANT, found.name) or found.is_owner_of(grant.on)
    ]


async def _possessions(metadata: Metadata, found: Tenant) -> dict[str, list[str]]:
    """What there is now of what a tenant owns, by resource; paths are not looked up."""
    there: dict[str, list[str]] = {}
    for resource in found.owns:
        names = await names_of(metadata, resource.kind) or []
        there[str(resource)] = [name for name in names if resource.covers(Resource(resource.kind, name))]
    return there


@tenant.command()
@verb_on_cluster(json=False)
@click.argument("name")
async def export(bk: BookKeeper, name: str) -> VerbAnswer:
    """Print, as JSON, everything that the policy says of the tenant NAME, what it has, and what it used last."""
    metadata = bk.metadata_store
    policy = await read_policy(metadata)
    found = required(policy, name)
    usage = await metadata.access.read_usage()
    amount = usage.tenants.get(name) if usage is not None else None
    document = {
        "tenant": tenant_document(found),
        "grants": [grant_document(each) for each in _about(policy, found)],
        "there_is": await _possessions(metadata, found),
        "counted_ms": usage.counted_ms if usage is not None else None,
        "bytes_kept": amount.bytes_kept if amount is not None else None,
        "ledgers": amount.ledgers if amount is not None else None,
    }
    return VerbAnswer(document, lambda: print_json(document))


@tenant.command()
@verb_on_cluster(changes=True)
@click.argument("name")
@click.option("--yes", is_flag=True, help="Delete it even if it still owns something.")
async def delete(bk: BookKeeper, name: str, yes: bool) -> VerbAnswer:
    """Take the tenant NAME out of the policy, with all grants to it. Its data stay where they are, and are nobody's.

    Refuses while there are streams, journals or ledgers that it owns: delete them, or hand them over.
    """
    metadata = bk.metadata_store
    there = await _possessions(metadata, required(await read_policy(metadata), name))
    has = [f"{resource} ({', '.join(names[:3])})" for resource, names in there.items() if names]
    if has and not yes:
        raise ConfigError(
            f"the tenant {name} still has {'; '.join(has)}, and nothing was changed: delete that, use `bk access "
            "tenant hand-over`, or give --yes and leave it to nobody"
        )

    def alter(policy: Policy) -> Policy:
        required(policy, name)
        kept = tuple(each for each in policy.grants if (each.who.kind, each.who.name) != (TENANT, name))
        return replace(policy, tenants=tuple(each for each in policy.tenants if each.name != name), grants=kept)

    await change_policy(metadata, f"tenant delete {name}", alter)
    return VerbAnswer({"deleted": name, "left": there}, f"deleted: tenant {name}; its data were not touched")


@tenant.command("hand-over")
@verb_on_cluster(changes=True)
@click.argument("giver")
@click.argument("taker")
@click.argument("resources", nargs=-1, metavar="[ON]...")
async def hand_over(bk: BookKeeper, giver: str, taker: str, resources: tuple[str, ...]) -> VerbAnswer:
    """Make the tenant TAKER the owner of what the tenant GIVER owns: of all, or of ON alone.

    Members of GIVER lose their rights on it within 5 s, and what it keeps counts for TAKER with the next count. Grants
    to others on it stay, and are listed.
    """
    given = tuple(Resource.parse(each) for each in resources)

    def alter(policy: Policy) -> Policy:
        one, two = required(policy, giver), required(policy, taker)
        if one.name == two.name:
            raise ConfigError(f"{giver} has it already")
        _require_there(giver, "possession", given, one.owns)
        moved = given or one.owns
        if not moved:
            raise ConfigError(f"the tenant {giver} owns nothing")
        tenants = {each.name: each for each in policy.tenants}
        tenants[giver] = one.without(moved)
        tenants[taker] = replace(two, owns=(*two.owns, *moved))
        return replace(policy, tenants=tuple(tenants.values()))

    policy = await change_policy(bk.metadata_store, f"tenant hand-over {giver} {taker} {' '.join(resources)}", alter)
    after = required(policy, taker)
    stay = [grant_document(each) for each in _about(policy, after)]
    owned = [str(each) for each in after.owns]
    said = [f"{taker} owns {', '.join(owned)}"]
    said += [f"note: this grant stays: {grant}" for grant in _about(policy, after)]
    return VerbAnswer({"tenant": tenant_document(after), "grants": stay}, "\n".join(said))


@click.command()
@verb_on_cluster(changes=True)
@click.argument("who")
@click.argument("limits", nargs=-1, required=True, metavar="KIND=LIMIT...")
async def quota(bk: BookKeeper, who: str, limits: tuple[str, ...]) -> VerbAnswer:
    """Set quotas that each principal has whom WHO means: a name, role:ROLE, tenant:TENANT, or anyone for every one.

    \b
    bytes_kept   bytes of entries in ledgers that he owns, each copy counted
    ledgers      ledgers that he owns
    adds_per_s   entries a second, on each server
    bytes_per_s  bytes of entries a second, on each server

    A limit is a number, with K, M, G or T, or none. Where several mean a principal, the smallest of each kind counts.
    """
    subject = Subject.parse(who)

    def alter(policy: Policy) -> Policy:
        before = next((each.quota for each in policy.quotas if each.who == subject), Quota())
        after = changed_quota(before, limits)
        rest = tuple(each for each in policy.quotas if each.who != subject)
        return replace(policy, quotas=(*rest, PrincipalQuota(subject, after)) if after.document() else rest)

    policy = await change_policy(bk.metadata_store, f"quota {who} {' '.join(limits)}", alter)
    found = next((each.quota for each in policy.quotas if each.who == subject), Quota())
    return VerbAnswer({"who": str(subject), "quota": found.document()}, f"{subject}: {found}")


_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_NONE: Final = "none"


def changed_quota(quota: Quota, words: Sequence[str]) -> Quota:
    """The quota with these limits changed; ``none`` takes one away, and K, M, G and T are powers of 1024.

    Raises:
        ConfigError: a word is no limit; the text says how one is written.
    """
    for word in words:
        name, equals, value = word.partition("=")
        known = [kind.value for kind in QuotaKind]
        if not equals or name not in known:
            raise ConfigError(f"{word!r} is not a quota: write one of {', '.join(known)}, '=' and a number or none")
        limit = None if value == _NONE else _number(name, value)
        quota = replace(quota, **{name: limit})
    return Quota.of(quota.document())


def _number(name: str, value: str) -> int:
    found = re.fullmatch(r"([0-9]{1,20})([KMGT]?)", value.upper().removesuffix("B"))
    if found is None:
        raise ConfigError(f"{name} is a whole number such as 1000, 20M or 1G, or none, not {value!r}")
    return int(found[1]) * _UNITS[found[2]]
