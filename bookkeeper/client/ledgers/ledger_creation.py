"""Creates a ledger: checks the options, chooses an ensemble, and writes the ledger's metadata.

No bookie is asked: bookies learn of a ledger with its first entry. The metadata are created exclusively, so that an id
is never given out twice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from inspect import Parameter, signature
from typing import Any, Final, Literal, NamedTuple, TypedDict, TypeVar

from bookkeeper.access.ownership import OWNER_KEY, checked_owner, owner_tag
from bookkeeper.client.arguments import ledger_number, require_bool, require_bytes, require_whole
from bookkeeper.client.config import ACK_QUORUM, ENSEMBLE, WRITE_QUORUM, ClientConfig
from bookkeeper.client.ledger_view import LedgerView
from bookkeeper.client.services import ClientServices
from bookkeeper.encryption import RECORD_NAME, EntrySealer, new_ledger_key
from bookkeeper.errors import BookieUnavailableError, ConfigError, NotEnoughBookiesError, require
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.ledger import DigestScheme, DigestType, LedgerMetadata, QuorumSpec
from bookkeeper.ledger.placement import WhenShort

_log = logging.getLogger(__name__)

F = TypeVar("F", bound=Callable[..., Any])

DIGESTS: Final = {
    "crc32c": DigestType.CRC32C,
    "crc32": DigestType.CRC32,
    "hmac": DigestType.HMAC,
    "mac": DigestType.HMAC,
    "dummy": DigestType.DUMMY,
}
"""The digest types by name."""

DEFAULT_DIGEST: Final = "crc32c"

METADATA_MAX: Final = 768 * 1024
"""Bytes of custom metadata and password at most: ZooKeeper takes values of up to 1 MiB, and a ledger's metadata grow
with each ensemble change."""


WhenShortName = Literal["fail", "name_absent"]
"""What happens if there are too few bookies for the ensemble; see :class:`bookkeeper.ledger.placement.WhenShort`."""


class LedgerOptions(TypedDict, total=False):
    """The keywords of :meth:`bookkeeper.client.bookkeeper.BookKeeper.create_ledger` and of its twin for threads, for
    type checkers and editors. What is left out is as in :class:`LedgerSpec`."""

    ensemble: int
    write_quorum: int
    ack_quorum: int
    password: bytes
    digest: str
    tamper_evident: bool
    unsafe_without_digest: bool
    encrypted: bool | None
    custom_metadata: Mapping[str, bytes] | None
    ledger_id: int | None
    when_short: WhenShortName
    deferred_sync: bool
    owner: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerSpec:
    """The options of a new ledger; see :meth:`bookkeeper.client.bookkeeper.BookKeeper.create_ledger`.

    Raises:
        ConfigError: an option is invalid, whatever the cluster is like.
    """

    ensemble: int = ENSEMBLE
    write_quorum: int = WRITE_QUORUM
    ack_quorum: int = ACK_QUORUM
    password: bytes = field(default=b"", repr=False)
    """The ledger's password; never shown."""
    digest: str = DEFAULT_DIGEST
    tamper_evident: bool = False
    unsafe_without_digest: bool = False
    encrypted: bool | None = None
    custom_metadata: Mapping[str, bytes] | None = None
    ledger_id: int | None = None
    when_short: WhenShortName = "fail"
    deferred_sync: bool = False
    owner: str | None = None
    """Whose the ledger is, such as ``streams:app/x`` or ``ledgers:etl``."""

    def __post_init__(self) -> None:
        require_bytes("password", self.password)
        self.spec()
        self.digest_type()
        self.policy()
        self._check_digest()
        for key, value in (self.custom_metadata or {}).items():
            fits = isinstance(key, str) and isinstance(value, bytes)
            require(fits, f"custom_metadata must map str to bytes, not {type(key).__name__} to {type(value).__name__}")
        require(
            RECORD_NAME not in (self.custom_metadata or {}),
            f"custom_metadata cannot have {RECORD_NAME}: that says how a ledger's entries are encrypted",
        )
        size = len(self.password) + sum(len(k.encode()) + len(v) for k, v in (self.custom_metadata or {}).items())
        require(
            size <= METADATA_MAX, f"custom_metadata and password may have {METADATA_MAX} bytes together, not {size}"
        )
        if self.owner is not None:
            named = (self.custom_metadata or {}).get(OWNER_KEY)
            same = named in (None, owner_tag(checked_owner(self.owner))[OWNER_KEY])
            require(same, f"custom_metadata has another {OWNER_KEY} than owner={self.owner!r}; give one of them")
        if self.ledger_id is not None:
            ledger_number(self.ledger_id)

    def custom(self, default_owner: str | None) -> dict[str, bytes]:
        """The custom metadata, with the owner; ``default_owner`` if none is named."""
        custom = dict(self.custom_metadata or {})
        owner = self.owner if OWNER_KEY in custom else self.owner or default_owner
        return custom | (owner_tag(checked_owner(owner)) if owner is not None else {})

    def is_encrypted(self, config: ClientConfig) -> bool:
        """Whether the entries are sealed before they leave this process."""
        if self.encrypted is None:
            return config.encryption is not None and config.encryption.new_ledgers
        return self.encrypted

    def _check_digest(self) -> None:
        """A digest with a key has a password, and no digest at all is asked for by name."""
        require_bool("tamper_evident", self.tamper_evident)
        require_bool("unsafe_without_digest", self.unsafe_without_digest)
        if self.encrypted is not None:
            require_bool("encrypted", self.encrypted)
        chosen = self.digest_type()
        require(
            not self.tamper_evident or self.digest == DEFAULT_DIGEST or chosen is DigestType.HMAC,
            f'tamper_evident=True means digest="hmac", and digest="{self.digest}" was given: give one of the two',
        )
        asked = "tamper_evident=True" if self.tamper_evident else 'digest="hmac"'
        require(
            self.password != b"" or chosen is not DigestType.HMAC,
            f"{asked} needs a password: without one its key is known to everybody, and it proves nothing; give "
            "password=..., or leave the digest at crc32c",
        )
        require(
            self.unsafe_without_digest or chosen is not DigestType.DUMMY,
            'digest="dummy" checks nothing: a reader takes whatever a bookie sends for the entry; leave the digest at '
            "crc32c, or give unsafe_without_digest=True as well",
        )
        require(
            not self.unsafe_without_digest or chosen is DigestType.DUMMY,
            f'unsafe_without_digest=True belongs to digest="dummy", not to "{self.digest}"',
        )

    def spec(self) -> QuorumSpec:
        """The ensemble size and quorums, checked."""
        for name in ("ensemble", "write_quorum", "ack_quorum"):
            require_whole(name, getattr(self, name))
        try:
            return QuorumSpec(ensemble_size=self.ensemble, write_quorum=self.write_quorum, ack_quorum=self.ack_quorum)
        except ValueError as error:
            given = f"{self.ensemble}, {self.write_quorum} and {self.ack_quorum}"
            raise ConfigError(f"a ledger needs ensemble >= write_quorum >= ack_quorum >= 1, not {given}") from error

    def digest_type(self) -> DigestType:
        named = digest_named(self.digest)
        return DigestType.HMAC if self.tamper_evident and named is DigestType.CRC32C else named

    def policy(self) -> WhenShort:
        try:
            return WhenShort(self.when_short)
        except ValueError:
            known = ", ".join(policy.value for policy in WhenShort)
            raise ConfigError(f"when_short must be one of {known}, not {self.when_short}") from None

    def check_with(self, config: ClientConfig) -> None:
        """Raise ConfigError if deferred sync or encryption is wanted and not possible with this client."""
        insists = config.encryption is not None and config.encryption.required
        require(
            self.encrypted is not False or not insists,
            "encrypted=False is not for a client that insists on encryption (encryption.required): it could not read "
            "what it writes",
        )
        require(
            not self.encrypted or config.encryption is not None,
            "encrypted=True needs a key: give ClientConfig(encryption=EncryptionConfig(key_file=...)), or set "
            "BK_ENCRYPTION_KEY_FILE",
        )
        if self.deferred_sync:
            require(config.protocol == "v3", 'deferred_sync needs protocol="v3": v2 cannot ask a bookie for it')
            every = self.policy() is WhenShort.FAIL
            require(every, 'deferred_sync needs when_short="fail": force() needs every bookie of the ensemble')


def digest_named(name: str) -> DigestType:
    """The digest type of this name. Raises: ConfigError: there is none; the message names those there are."""
    try:
        return DIGESTS[name.lower()]
    except (KeyError, AttributeError):
        raise ConfigError(f"digest must be one of {', '.join(sorted(DIGESTS))}, not {name}") from None


def takes_ledger_options(method: F) -> F:
    """Decorate ``method(self, *, advanced=False, **options: Unpack[LedgerOptions])`` so that ``help()`` and
    :mod:`inspect` show the keywords with their defaults."""
    own = list(signature(method).parameters.values())[:-1]
    options = [
        Parameter(option.name, Parameter.KEYWORD_ONLY, default=option.default, annotation=option.type)
        for option in fields(LedgerSpec)
    ]
    method.__signature__ = signature(method).replace(parameters=[own[0], *options, *own[1:]])  # type: ignore[attr-defined]
    return method


def refuse_unknown(options: Mapping[str, object]) -> None:
    """Refuse keywords that are no option of a ledger, as Python refuses unknown keywords. Raises: TypeError."""
    for name in options:
        if name not in LedgerOptions.__annotations__:
            raise TypeError(f"BookKeeper.create_ledger() got an unexpected keyword argument {name!r}")


class NewLedger(NamedTuple):
    """What the writer of a new ledger needs."""

    view: LedgerView
    digest: DigestScheme
    sealer: EntrySealer | None
    """None: its entries are not encrypted."""


async def create(services: ClientServices, wanted: LedgerSpec) -> NewLedger:
    """Create a new ledger in the metadata.

    Raises:
        ConfigError: ``deferred_sync`` is not possible with this client.
        NotEnoughBookiesError: there are too few bookies; the message names those there are.
        LedgerExistsError: the id that was asked for is taken.
        MetadataUnavailableError: the store does not answer. If the ledger was created, nobody else knows of it.
    """
    wanted.check_with(services.config)
    while True:
        try:
            return await _create(services, wanted)
        except BookieUnavailableError as error:  # the cluster forgot an absent bookie that was chosen: choose again
            _log.info("a new ledger gets another ensemble: %s", error)


async def _create(services: ClientServices, wanted: LedgerSpec) -> NewLedger:
    """One attempt. Raises: BookieUnavailableError: the cluster has forgotten an absent bookie that was chosen."""
    digest_type, spec = wanted.digest_type(), wanted.spec()
    chosen = await _choose(services, spec, wanted.policy())
    absent = _absent(services, chosen)
    key, custom = None, wanted.custom(services.config.owner)
    if wanted.is_encrypted(services.config):
        assert services.config.encryption is not None, "check_with has looked"
        key = await new_ledger_key(services.config.encryption, services.seams.rng)  # one for each attempt
        custom |= key.custom_metadata
    metadata = LedgerMetadata.create(
        spec,
        chosen,
        digest_type=digest_type,
        password=wanted.password,
        custom=custom,
        ctime_ms=services.seams.clock.wall_ms(),
    )
    ledgers = services.metadata.ledgers
    wanted_id = None if wanted.ledger_id is None else LedgerId(wanted.ledger_id)
    await services.pool.look_up(chosen)  # its first append works, also if the metadata store is away by then
    new_id, stored = await ledgers.create(metadata, wanted_id, absent=absent)
    _note_absent(services, new_id, absent)
    sealer = None if key is None else key.sealer(new_id)
    return NewLedger(LedgerView(ledgers, new_id, stored), DigestScheme(digest_type, wanted.password), sealer)


async def _choose(services: ClientServices, spec: QuorumSpec, when_short: WhenShort) -> tuple[BookieId, ...]:
    """Choose an ensemble for a new ledger. If there are too few bookies, read the list again first: it may be old."""
    try:
        return _place(services, spec, (), WhenShort.FAIL)
    except NotEnoughBookiesError:
        await services.watcher.refresh()
    absent = await services.watcher.known_absent() if when_short is WhenShort.NAME_ABSENT else ()
    return _place(services, spec, absent, when_short)


def _place(
    services: ClientServices, spec: QuorumSpec, absent: Sequence[BookieId], when_short: WhenShort
) -> tuple[BookieId, ...]:
    watcher = services.watcher
    return services.placement.new_ensemble(
        spec,
        watcher.candidates(),
        avoided=watcher.quarantined(),
        known_absent=absent,
        when_short=when_short,
    )


def _absent(services: ClientServices, chosen: Sequence[BookieId]) -> list[BookieId]:
    return [bookie for bookie in chosen if bookie not in services.watcher.writable]


def _note_absent(services: ClientServices, ledger_id: LedgerId, absent: Sequence[BookieId]) -> None:
    if absent:
        services.metrics.counter(
            "ledgers_created_short", "Ledgers that were created with absent bookies in their ensemble."
        ).add()
        _log.warning(
            "ledger %d was created with absent bookies (%s): it has fewer copies until they return or it is repaired",
            ledger_id,
            ", ".join(absent),
        )
