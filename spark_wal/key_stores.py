"""Java's key stores (PKCS#12) from PEM: authorities for a trust store, a key and its chain for a key store.

Stock Hadoop does not read PEM. Java does not trust the authorities in OpenSSL's PKCS#12 files, because it needs a mark
on each of them. Trust stores made here have that mark. They are not encrypted and need no password: Hadoop's clients of
Spark 3.5 to 4.3 and the JVM's own ``javax.net.ssl.trustStore`` read them without one. Key stores are encrypted
(AES-256), which Java reads from 8u301 and 11.0.12 on.

Only this file of the package imports the library ``cryptography``.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, NoEncryption, load_pem_private_key
from cryptography.hazmat.primitives.serialization.pkcs12 import (
    PKCS12Certificate,
    serialize_java_truststore,
    serialize_key_and_certificates,
)
from cryptography.utils import CryptographyDeprecationWarning

from bookkeeper.secret import Secret

logger = logging.getLogger(__name__)

_Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey


def trust_store(ca: bytes, public: Sequence[bytes] = ()) -> bytes:
    """Make a store of the authorities in ``ca`` (PEM) and of those ``public`` ones (DER) that can be read.

    Raises:
        ValueError: ``ca`` has no certificate, or a certificate that cannot be read.
    """
    authorities = [*x509.load_pem_x509_certificates(ca), *_readable(public)]
    marked = [PKCS12Certificate(found, b"ca-%d" % number) for number, found in enumerate(authorities)]
    return serialize_java_truststore(marked, NoEncryption())


def key_store(certificates: bytes, key: bytes, password: Secret) -> bytes:
    """Make a store of one private key (PEM) and its certificates (PEM, the key's own first).

    Raises:
        ValueError: they cannot be read or do not belong together, or the key has a password.
    """
    own, *chain = x509.load_pem_x509_certificates(certificates)
    encryption = BestAvailableEncryption(password.reveal().encode())
    return serialize_key_and_certificates(b"client", _private(key), own, chain, encryption)


def _private(pem: bytes) -> _Key:
    try:
        key = load_pem_private_key(pem, None)
    except TypeError as error:  # the library raises it for a key with a password
        raise ValueError(
            f"{error} (if the key has a password, openssl pkcs8 -topk8 -nocrypt makes one without)"
        ) from None
    except UnsupportedAlgorithm as error:
        raise ValueError(str(error)) from error
    if not isinstance(key, _Key):
        raise ValueError(f"a key of the kind {type(key).__name__} cannot be used for TLS")
    return key


def _readable(certificates: Sequence[bytes]) -> Iterator[x509.Certificate]:
    """The public authorities that can be read. Some are so old that they break today's rules, but are still trusted."""
    for data in certificates:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CryptographyDeprecationWarning)
                yield x509.load_der_x509_certificate(data)
        except ValueError as error:
            logger.warning(
                "a public authority of this system cannot be read, and is left out of the trust store: %s", error
            )
