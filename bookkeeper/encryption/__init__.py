"""Encryption of entries by the client: bookies, their disks and the network see ciphertext only.

config         the table ``[encryption]``
ledger_keys    a ledger's data key: made with it, found again by readers
entries        seals the entries of one writer, each id once; opens those of one ledger
providers      who wraps data keys: a file, the environment, a function, a service of your own
key_record     what a ledger's metadata say about it
compression    a payload is compressed before it is sealed
ciphers        the library ``cryptography``
"""

from bookkeeper.encryption.config import EncryptionConfig
from bookkeeper.encryption.entries import EntryOpener, EntrySealer
from bookkeeper.encryption.key_record import RECORD_NAME, WrappedKey, key_record_in
from bookkeeper.encryption.ledger_keys import NewLedgerKey, ledger_opener, new_ledger_key
from bookkeeper.encryption.providers import CallableKeys, EnvironmentKeys, FileKeys, KeyProvider, KeyRing

__all__ = [
    "RECORD_NAME",
    "CallableKeys",
    "EncryptionConfig",
    "EntryOpener",
    "EntrySealer",
    "EnvironmentKeys",
    "FileKeys",
    "KeyProvider",
    "KeyRing",
    "NewLedgerKey",
    "WrappedKey",
    "key_record_in",
    "ledger_opener",
    "new_ledger_key",
]
