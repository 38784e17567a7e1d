"""The data key of a ledger: made with the ledger by its only writer, and found again by its readers.

A key is 256 random bits and is made for one attempt to create one ledger. The writer has it in memory; what is stored
is the wrapped key. Nobody ever seals with a key that was read: so a ledger that is recovered, brought back or made
again under the same id has no second writer with the same key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bookkeeper.compression import Compression
from bookkeeper.encryption.ciphers import KEY_BYTES, Cipher, new_aead
from bookkeeper.encryption.config import EncryptionConfig
from bookkeeper.encryption.entries import EntryOpener, EntrySealer
from bookkeeper.encryption.key_record import KEY_ID_MAX, RECORD_NAME, WRAPPED_MAX, KeyRecord, WrappedKey, key_record_in
from bookkeeper.errors import ConfigError, NoLedgerKeyError, require
from bookkeeper.seams import Rng


@dataclass(frozen=True, slots=True)
class NewLedgerKey:
    """The key of a ledger that is about to be made."""

    record: KeyRecord
    key: bytes = field(repr=False)

    @property
    def custom_metadata(self) -> dict[str, bytes]:
        """What the ledger's metadata say of it."""
        return {RECORD_NAME: self.record.encode()}

    def sealer(self, ledger_id: int) -> EntrySealer:
        """The one sealer of the ledger's one writer."""
        return EntrySealer(ledger_id, new_aead(self.record.cipher, self.key), self.record.compression)


async def new_ledger_key(config: EncryptionConfig, rng: Rng) -> NewLedgerKey:
    """A key for one ledger.

    Raises:
        ConfigError: there is no usable wrapping key, or the provider's answer is too large. And what the provider
        raises.
    """
    key = rng.getrandbits(8 * KEY_BYTES).to_bytes(KEY_BYTES, "big")
    wrapped = await config.keys.wrap(key)
    require(
        isinstance(wrapped, WrappedKey)
        and 0 < len(wrapped.key_id) <= KEY_ID_MAX
        and 0 < len(wrapped.data) <= WRAPPED_MAX,
        f"the provider of keys wrapped a ledger's key into something that is not kept: a key's id has 1 to "
        f"{KEY_ID_MAX} characters, and a wrapped key 1 to {WRAPPED_MAX} bytes",
    )
    return NewLedgerKey(KeyRecord(Cipher(config.cipher), Compression.named(config.compression), wrapped), key)


async def ledger_opener(
    config: EncryptionConfig | None, ledger_id: int, custom: Mapping[str, bytes], payload_max: int
) -> EntryOpener | None:
    """What opens the entries of a ledger with this custom metadata; None: they are not encrypted.

    Raises:
        NoLedgerKeyError: they are, and this client does not have the key; or they are not, and it insists on that.
        MetadataFormatError: the metadata do not say how. ConfigError: the provider, or a library, cannot be used.
    """
    record = key_record_in(custom, ledger_id)
    if record is None:
        if config is not None and config.required:
            raise NoLedgerKeyError(
                f"the metadata of ledger {ledger_id} name no key, so its entries are not encrypted, or somebody has "
                "taken that away; this client reads encrypted ledgers only (encryption.required, "
                "BK_ENCRYPTION_REQUIRED)"
            )
        return None
    if config is None:
        raise NoLedgerKeyError(
            f"the entries of ledger {ledger_id} are encrypted, their key is wrapped under key {record.key.shown_id}, "
            "and this client has no keys: give ClientConfig(encryption=EncryptionConfig(key_file=...)), or set "
            "BK_ENCRYPTION_KEY_FILE"
        )
    try:
        key = await config.keys.unwrap(record.key)
    except NoLedgerKeyError as error:
        raise NoLedgerKeyError(
            f"the entries of ledger {ledger_id} are encrypted, and cannot be read: {error}"
        ) from error
    if len(key) != KEY_BYTES:
        raise ConfigError(f"the provider of keys gave a key of {len(key)} bytes for ledger {ledger_id}")
    return EntryOpener(ledger_id, new_aead(record.cipher, key), record.compression, payload_max)
