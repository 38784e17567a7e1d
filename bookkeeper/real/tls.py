"""Keys and trust from files, as OpenSSL contexts: TLS 1.2 at least, verified always, renewed when files change."""

from __future__ import annotations

import os
import ssl
from typing import Final

from bookkeeper.errors import ConfigError, in_words
from bookkeeper.real.private import read_private
from bookkeeper.seams import TlsFiles

_Stamp = tuple[int, int, int, int]

_CRL: Final = "-----BEGIN X509 CRL-----"
_BEGIN: Final = "-----BEGIN CERTIFICATE-----"
_END: Final = "-----END CERTIFICATE-----"


class FileTls:
    """See :class:`bookkeeper.seams.Tls`.

    Raises:
        ConfigError: a file cannot be read or used, or others may read the private key.
    """

    def __init__(self, files: TlsFiles) -> None:
        self.files = files
        self.context: ssl.SSLContext
        """What the files said when they were last read whole: for the next handshake."""
        self.certificate: bytes | None = None
        self.trusted = ""
        self._stamps: list[_Stamp] = []
        self._load()

    def refresh(self) -> bool:
        try:
            changed = self._read_stamps() != self._stamps
        except OSError as error:
            raise ConfigError(f"the TLS files cannot be looked at: {in_words(error)}") from error
        if changed:
            self._load()
        return changed

    @property
    def is_current(self) -> bool:
        """Whether no file has changed since they were last read whole. Raises: OSError."""
        return self._read_stamps() == self._stamps

    def _load(self) -> None:
        try:
            stamps = self._read_stamps()  # before reading: what changes meanwhile is read again next time
            context = _context(self.files)
            certificate = _first_certificate(self.files.cert) if self.files.cert is not None else None
            trusted = "\n".join(_text(path) for path in (self.files.ca, self.files.crl) if path is not None)
            if self._read_stamps() != stamps:
                raise ValueError("they changed while they were read; they are read again with the next look")
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            raise ConfigError(f"the TLS files cannot be used ({_names(self.files)}): {_why(error)}") from error
        self.context, self.certificate, self.trusted, self._stamps = context, certificate, trusted, stamps

    def _read_stamps(self) -> list[_Stamp]:
        stamps = []
        for path in _paths(self.files):
            status = os.stat(path)
            # a file that is put in another's place may be older than it; the last time tells that it was put there
            stamps.append((status.st_mtime_ns, status.st_size, status.st_ino, status.st_ctime_ns))
        return stamps


def _why(error: OSError | ValueError) -> str:
    """What is wrong with the files. OpenSSL's own words for a file without a certificate or key say only "PEM lib"."""
    if isinstance(error, ssl.SSLError) and "PEM lib" in str(error):
        return "a certificate in PEM format, or its private key, is missing in them or damaged"
    return in_words(error)


def _paths(files: TlsFiles) -> list[str]:
    return [path for path in (files.cert, files.key, files.ca, files.crl) if path is not None]


def _names(files: TlsFiles) -> str:
    return ", ".join(_paths(files))


def _context(files: TlsFiles) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if files.server else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    if files.server:
        context.options |= ssl.OP_NO_TICKET | ssl.OP_CIPHER_SERVER_PREFERENCE
        context.num_tickets = 0  # a resumed session would outlive a revoked certificate
        if files.ca is not None:
            context.verify_mode = ssl.CERT_OPTIONAL if files.anonymous else ssl.CERT_REQUIRED
    else:
        context.hostname_checks_common_name = False
        context.check_hostname = files.verify_host
        context.verify_mode = ssl.CERT_REQUIRED
    if files.ca is not None:
        text = _text(files.ca)
        context.load_verify_locations(cafile=files.ca)
        if _CRL in text:
            context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    if files.crl is not None:
        _load_revocations(context, files.crl)
    if files.cert is not None:
        read_private(files.key or files.cert)  # as with ssh, a key that others may read is no secret
        context.load_cert_chain(files.cert, files.key, password=_no_password)
    return context


def _load_revocations(context: ssl.SSLContext, path: str) -> None:
    """A file that would add an authority is no list of revocations, and one without a list would revoke nothing."""
    text = _text(path)
    if _CRL not in text:
        raise ValueError(
            f"{path} holds no revocation list in PEM (openssl crl -inform DER -in FILE -out {path} makes one)"
        )
    if _BEGIN in text:
        raise ValueError(f"{path} holds a certificate: authorities belong into their own file")
    context.load_verify_locations(cafile=path)
    context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _no_password() -> str:
    raise ValueError(
        "the private key has a password, and nobody is asked for it: give one without a password, for its owner only"
    )


def _text(path: str) -> str:
    with open(path, encoding="ascii", errors="replace") as file:
        return file.read()


def _first_certificate(path: str) -> bytes:
    text = _text(path)
    begin = text.index(_BEGIN)
    return ssl.PEM_cert_to_DER_cert(text[begin : text.index(_END, begin) + len(_END)])
