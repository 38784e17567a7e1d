"""Translates the settings of an Apache bookie: each is translated, means nothing here, or is refused by name. Pure.

A setting without a value (or ``null``) counts as not given, as with Apache's. What is refused would behave otherwise
here than its operator has ordered, and the refusal says what to do instead.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from bookkeeper.admin.config.apache_names import NOTED


class SettingKind(StrEnum):
    """What becomes of a setting."""

    TRANSLATED = "translated"
    NOTED = "meaningless here"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class SettingFate:
    """One setting of Apache's, and what became of it."""

    name: str
    value: str
    fate: SettingKind
    text: str
    """The option here, the reason why it means nothing, or what to do about the refusal."""


@dataclass(slots=True)
class Translation:
    """What came of a whole file."""

    options: dict[str, Any] = field(default_factory=dict)
    """A bookie's settings, as in its TOML file."""

    autorecovery: list[str] = field(default_factory=list)
    """Options of ``bk autorecovery`` that the file asks for."""

    fates: list[SettingFate] = field(default_factory=list)

    def refused(self, left_out: Iterable[str] = ()) -> list[SettingFate]:
        """What is refused and was not left out on purpose."""
        accepted = set(left_out)
        return [each for each in self.fates if each.fate is SettingKind.REFUSED and each.name not in accepted]


class RefusedSetting(Exception):
    """This value has no meaning that could be kept here; the text says what to do."""


def translate(settings: Mapping[str, str], *, directory: str) -> Translation:
    """What the settings of an Apache bookie are here.

    Args:
        settings: names and values, as :func:`~bookkeeper.admin.config.apache_properties.parse_properties` finds them.
        directory: the directory of the new bookie's identity. Directories of the file become ``PLACE/bookkeeper-py``,
            because a bookie here never uses files of Java's.
    """
    given = {name: value for name, value in settings.items() if value not in ("", "null")}
    found = Translation(options={"directory": directory})
    for name, value in settings.items():
        if name not in given:
            fate, text = SettingKind.NOTED, "it has no value"
            if name not in RULES and name not in NOTED:
                fate, text = SettingKind.REFUSED, _unknown(name)
        elif (rule := RULES.get(name)) is not None:
            try:
                said = rule(value, given, found)
                fate, text = (SettingKind.NOTED, said[1:]) if said.startswith("-") else (SettingKind.TRANSLATED, said)
            except RefusedSetting as error:
                fate, text = SettingKind.REFUSED, str(error)
        elif name in NOTED:
            fate, text = SettingKind.NOTED, NOTED[name]
        else:
            fate, text = SettingKind.REFUSED, _unknown(name)
        found.fates.append(SettingFate(name, value, fate, text))
    if found.options.pop("wants_autorecovery", False) and not found.autorecovery:
        found.options["autorecovery"] = True
    return found


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, [*RULES, *NOTED], 1)
    return f"Apache's bookies have no such setting{f'; did you mean {near[0]}?' if near else ''}"


# -- rules -----------------------------------------------------------------------------------------------

Rule = Callable[[str, Mapping[str, str], Translation], str]
"""Translates one value and says which option it is; a text that begins with ``-`` is a reason why it means nothing."""


def _put(found: Translation, option: str, value: Any) -> str:
    table, dot, name = option.partition(".")
    if dot:
        found.options.setdefault(table, {})[name] = value
    else:
        found.options[option] = value
    return f"{option} = {str(value).lower() if isinstance(value, bool) else value}"


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise RefusedSetting(f"must be a number, not {value}") from None


def _truth(value: str) -> bool:
    known = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
    if value.lower() not in known:
        raise RefusedSetting(f"must be true or false, not {value}")
    return known[value.lower()]


def _list(value: str) -> list[str]:
    return [each.strip() for each in value.split(",") if each.strip()]


def _text_as(option: str) -> Rule:
    return lambda value, _, found: _put(found, option, value)


def _truth_as(option: str) -> Rule:
    return lambda value, _, found: _put(found, option, _truth(value))


def _number_as(option: str, *, times: float = 1.0, whole: bool = False) -> Rule:
    def rule(value: str, given: Mapping[str, str], found: Translation) -> str:
        number = _number(value) * times
        return _put(found, option, int(number) if whole else number)

    return rule


def _only(wanted: bool, reason: str, otherwise: str) -> Rule:
    """A switch that stands as ``wanted`` here, always."""

    def rule(value: str, given: Mapping[str, str], found: Translation) -> str:
        if _truth(value) is not wanted:
            raise RefusedSetting(otherwise)
        return f"-{reason}"

    return rule


def _never(otherwise: str) -> Rule:
    def rule(value: str, given: Mapping[str, str], found: Translation) -> str:
        raise RefusedSetting(otherwise)

    return rule


def _autorecovery_as(option: str, *, per: float = 1.0) -> Rule:
    def rule(value: str, given: Mapping[str, str], found: Translation) -> str:
        number = _number(value) / per
        found.autorecovery += [option, f"{number:g}" if abs(number) < 1e6 else str(int(number))]
        return f"bk autorecovery {option} {found.autorecovery[-1]}"

    return rule


def _with_autorecovery(value: str, given: Mapping[str, str], found: Translation) -> str:
    if not _truth(value):
        return "-a bookie runs autorecovery only where it is told to"
    found.options["wants_autorecovery"] = True
    return "autorecovery = true, or a process of its own where it has settings (bk autorecovery)"


def _apart(value: str, given: Mapping[str, str], found: Translation) -> str:
    if not _truth(value):
        return "-copies in too few racks are moved only with bk autorecovery --repair-placement"
    found.autorecovery.append("--repair-placement")
    return "bk autorecovery --repair-placement"


def _listen(value: str, given: Mapping[str, str], found: Translation) -> str:
    port = int(_number(value))
    said = [_put(found, "listen", f"0.0.0.0:{port}")]
    if (host := given.get("advertisedAddress")) is not None:
        said.append(_put(found, "advertise", f"{host}:{port}"))
    return ", ".join(said)


def _advertise(value: str, given: Mapping[str, str], found: Translation) -> str:
    if "bookiePort" not in given:
        _put(found, "listen", "0.0.0.0:3181")
    return _put(found, "advertise", f"{value}:{given.get('bookiePort', '3181')}")


def _directories(value: str, given: Mapping[str, str], found: Translation) -> str:
    ledgers = [f"{each.rstrip('/')}/bookkeeper-py" for each in _list(given.get("ledgerDirectories", ""))]
    named = given.get("journalDirectories") or given.get("journalDirectory", "")
    journals = [f"{each.rstrip('/')}/bookkeeper-py-journal" for each in _list(named)]
    if len(ledgers) > 1:
        said = _put(found, "ledger_dirs", ledgers)
        if len(journals) == len(ledgers):
            return f"{said}; {_put(found, 'journal_dirs', journals)}"
        return f"{said}; each ledger directory has its journal in itself, unless journal_dirs names one for each"
    if len(journals) > 1:
        raise RefusedSetting("a bookie here has one journal for each ledger directory: name as many of both, or one")
    parts = [_put(found, "storage.ledger_dir", ledgers[0])] if ledgers else []
    parts += [_put(found, "storage.journal_dir", journals[0])] if journals else []
    return f"{', '.join(parts)}: a new directory, because no bookie here uses files of Java's"


def _metadata(value: str, given: Mapping[str, str], found: Translation) -> str:
    scheme = value.partition("://")[0]
    if scheme.partition("+")[0] != "zk":
        raise RefusedSetting(f"there is no metadata store {scheme} here, only ZooKeeper (zk://HOST:PORT/ROOT)")
    return _put(found, "metadata_uri", value)


def _servers(value: str, given: Mapping[str, str], found: Translation) -> str:
    if "metadataServiceUri" in given:
        return "-metadataServiceUri says it"
    root = given.get("zkLedgersRootPath", "/ledgers")
    return _put(found, "metadata_uri", f"zk://{','.join(_list(value))}{root}")


def _root(value: str, given: Mapping[str, str], found: Translation) -> str:
    return "-metadataServiceUri says it" if "metadataServiceUri" in given else "metadata_uri, behind zkServers"


_PROMETHEUS: Final = "org.apache.bookkeeper.stats.prometheus.PrometheusMetricsProvider"
_NO_STATISTICS: Final = "org.apache.bookkeeper.stats.NullStatsProvider"


def _statistics(value: str, given: Mapping[str, str], found: Translation) -> str:
    if value == _NO_STATISTICS:
        return "-the numbers are at http_listen, which is this machine's own; an empty text switches it off"
    if value != _PROMETHEUS:
        raise RefusedSetting(f"{value}: numbers are shown to Prometheus only (http_listen, the page /metrics)")
    host, port = given.get("prometheusStatsHttpAddress", "0.0.0.0"), given.get("prometheusStatsHttpPort", "8000")
    said = _put(found, "http_listen", f"{host}:{port}")
    if not host.startswith("127.") and host not in ("localhost", "::1"):
        said += f", {_put(found, 'http_insecure', True)}: read by everyone who reaches the port, as before"
    return said


def _pages(value: str, given: Mapping[str, str], found: Translation) -> str:
    if given.get("statsProviderClass") != _PROMETHEUS:
        return "-statsProviderClass is not Prometheus'"
    return "http_listen, with statsProviderClass"


def _http_server(value: str, given: Mapping[str, str], found: Translation) -> str:
    if not _truth(value):
        return "-the HTTP API is off until it has an address"
    raise RefusedSetting(
        "the HTTP API here asks for tokens: make one (bk gateway token NAME --token-file FILE), and give "
        '[http_api] listen = "127.0.0.1:8080" and token_file'
    )


def _tls(value: str, given: Mapping[str, str], found: Translation) -> str:
    wanted = {"tlsCertificatePath": "cert", "tlsKeyStore": "key"}
    for name in ("tlsKeyStoreType", "tlsTrustStoreType"):
        store = name.removesuffix("Type")
        if store in given and (kind := given.get(name, "JKS")).upper() != "PEM":
            raise RefusedSetting(
                f"{store} is a {kind} store: write certificate and key as PEM files (keytool -importkeystore "
                "-deststoretype PKCS12, then openssl pkcs12 -nodes), and give [tls] cert, key and client_ca"
            )
    if missing := [name for name in wanted if name not in given]:
        raise RefusedSetting(f"{' and '.join(missing)} must name PEM files: [tls] cert and key")
    said = [_put(found, f"tls.{option}", given[name]) for name, option in wanted.items()]
    if _truth(given.get("tlsClientAuthentication", "false")):
        if "tlsTrustStore" not in given:
            raise RefusedSetting("tlsTrustStore must name the authorities of clients: [tls] client_ca")
        said.append(_put(found, "tls.client_ca", given["tlsTrustStore"]))
    return f"{', '.join(said)}; clients without TLS are refused, unless tls.mode = offered"


def _of_tls(value: str, given: Mapping[str, str], found: Translation) -> str:
    return "[tls], with tlsProviderFactoryClass" if "tlsProviderFactoryClass" in given else "-TLS is not on"


def _reload(value: str, given: Mapping[str, str], found: Translation) -> str:
    if "tlsProviderFactoryClass" not in given or _number(value) <= 0:
        return "-changed files are noticed in any case"
    return _put(found, "tls.reload_interval_s", _number(value))


def _roles(value: str, given: Mapping[str, str], found: Translation) -> str:
    if "tlsProviderFactoryClass" not in given:
        raise RefusedSetting("roles come from certificates, and TLS is not on")
    return _put(found, "tls.roles", _list(value))


def _auth(value: str, given: Mapping[str, str], found: Translation) -> str:
    if value == "org.apache.bookkeeper.tls.BookieAuthZFactory":
        if "tlsProviderFactoryClass" not in given:
            raise RefusedSetting("it needs TLS, which is not on")
        return _put(found, "auth", {"provider": "tls"})
    if value == "org.apache.bookkeeper.sasl.SASLBookieAuthProviderFactory":
        raise RefusedSetting('write the users (bk credentials --help), and give [auth] provider = "sasl", options.file')
    raise RefusedSetting(f"{value}: give [auth] provider, one of tls, token, sasl, or MODULE:ATTRIBUTE of your own")


def _rate(value: str, given: Mapping[str, str], found: Translation) -> str:
    if given.get("isThrottleByBytes", "false").lower() != "true":
        return "-isThrottleByBytes is not true; storage.compaction_bytes_per_s limits a compaction"
    return _put(found, "storage.compaction_bytes_per_s", int(_number(value)))


def _throttled(value: str, given: Mapping[str, str], found: Translation) -> str:
    return "storage.compaction_bytes_per_s, with compactionRateByBytes" if _truth(value) else f"-{_BYTES_ALONE}"


_BYTES_ALONE: Final = "a compaction is limited in bytes a second (storage.compaction_bytes_per_s)"


def _run_ms(value: str, given: Mapping[str, str], found: Translation) -> str:
    both = [_number(given.get(name, "-1")) for name in ("minorCompactionMaxTimeMillis", "majorCompactionMaxTimeMillis")]
    return _put(found, "storage.compaction_run_s", max(both) / 1000 if min(both) > 0 else 0.0)


def _scrub(value: str, given: Mapping[str, str], found: Translation) -> str:
    if _number(value) <= 0:
        return "-everything is read once a week (storage.scrub_period_s); 0 there switches that off"
    return _put(found, "storage.scrub_period_s", _number(value))


def _journal_channel(value: str, given: Mapping[str, str], found: Translation) -> str:
    if value != "org.apache.bookkeeper.bookie.DefaultFileChannelProvider":
        raise RefusedSetting("a journal here is a file of its directory, and nothing else")
    return f"-{NOTED['journalSyncData']}"


_ID: Final = "a bookie's id is told: leave it out, and give bookieId as the bookie has had it (bk bookies lists them)"

RULES: Final[Mapping[str, Rule]] = {
    "bookieId": _text_as("bookie_id"),
    "bookiePort": _listen,
    "advertisedAddress": _advertise,
    "listeningInterface": _never("a bookie listens at an address: leave it out, and give listen = HOST:PORT"),
    "useHostNameAsBookieID": _only(False, "bookieId or the address of its first start is its id", _ID),
    "useShortHostName": _only(False, "bookieId or the address of its first start is its id", _ID),
    "enableLocalTransport": _only(False, "there is none", "there is no transport within the process"),
    "disableServerSocketBind": _only(False, "a bookie always listens", "a bookie always listens"),
    "extraServerComponents": _never("a bookie runs no components of Java's; leave it out if nobody uses them"),
    "readOnlyModeEnabled": _only(
        True,
        "a bookie without room takes no adds, and goes on serving",
        "a bookie without room is never ended; leave it out",
    ),
    "forceReadOnlyBookie": _truth_as("read_only"),
    "persistBookieStatusEnabled": _only(
        False, "it is so", "what an operator switched is forgotten at a restart: read_only = true stays"
    ),
    "skipReplayJournalInvalidRecord": _only(
        False, "a damaged journal is told, and never passed over", "a damaged journal is never passed over"
    ),
    "nettyMaxFrameSizeBytes": _number_as("frame_max", whole=True),
    "maxBatchReadSize": _number_as("batch_read_bytes", whole=True),
    "diskCheckInterval": _number_as("space_check_s", times=0.001),
    "gcWaitTime": _number_as("garbage_interval_s", times=0.001),
    "journalDirectories": _directories,
    "journalDirectory": _directories,
    "ledgerDirectories": _directories,
    "journalChannelProvider": _journal_channel,
    "logSizeLimit": _number_as("storage.entry_log_bytes", whole=True),
    "minUsableSizeForHighPriorityWrites": _number_as("storage.reserve_bytes", whole=True),
    "entryLogPerLedgerEnabled": _truth_as("storage.entry_log_per_ledger"),
    "entrylogMapAccessExpiryTimeInSeconds": _number_as("storage.log_idle_s"),
    "maximumNumberOfActiveEntryLogs": _number_as("storage.open_logs_max", whole=True),
    "minorCompactionThreshold": _number_as("storage.minor_compaction_ratio"),
    "minorCompactionInterval": _number_as("storage.minor_compaction_interval_s"),
    "minorCompactionMaxTimeMillis": _run_ms,
    "majorCompactionThreshold": _number_as("storage.major_compaction_ratio"),
    "majorCompactionInterval": _number_as("storage.major_compaction_interval_s"),
    "majorCompactionMaxTimeMillis": _run_ms,
    "isThrottleByBytes": _throttled,
    "compactionRateByBytes": _rate,
    "localScrubInterval": _scrub,
    "metadataServiceUri": _metadata,
    "zkServers": _servers,
    "zkLedgersRootPath": _root,
    "zkTimeout": _number_as("metadata_session_s", times=0.001),
    "zkEnableSecurity": _only(
        False,
        "an identity in ZooKeeper is told by BK_ZOOKEEPER",
        "write the identity into a file that BK_ZOOKEEPER names (docs/metadata.md), and leave it out",
    ),
    "enableStatistics": _only(True, "numbers are always kept", 'http_listen = "" shows no numbers; leave it out'),
    "statsProviderClass": _statistics,
    "prometheusStatsHttpAddress": _pages,
    "prometheusStatsHttpPort": _pages,
    "httpServerEnabled": _http_server,
    "tlsProviderFactoryClass": _tls,
    "tlsCertificatePath": _of_tls,
    "tlsKeyStore": _of_tls,
    "tlsKeyStoreType": _of_tls,
    "tlsTrustStore": _of_tls,
    "tlsTrustStoreType": _of_tls,
    "tlsClientAuthentication": _of_tls,
    "tlsKeyStorePasswordPath": _never("a private key has no password here; its file is readable by its owner alone"),
    "tlsTrustStorePasswordPath": _never("authorities are a PEM file without a password"),
    "tlsCertFilesRefreshDurationSeconds": _reload,
    "tlsEnabledCipherSuites": _never("ciphers are those of Python's defaults for servers; leave it out"),
    "tlsEnabledProtocols": _never("TLS 1.2 and 1.3 are spoken; leave it out"),
    "bookieAuthProviderFactoryClass": _auth,
    "authorizedRoles": _roles,
    "autoRecoveryDaemonEnabled": _with_autorecovery,
    "lostBookieRecoveryDelay": _autorecovery_as("--lost-bookie-delay"),
    "openLedgerRereplicationGracePeriod": _autorecovery_as("--grace", per=1000),
    "auditorPeriodicCheckInterval": _autorecovery_as("--check-every", per=3600),
    "auditorPeriodicPlacementPolicyCheckInterval": _autorecovery_as("--check-placement-every", per=3600),
    "auditorLedgerVerificationPercentage": _autorecovery_as("--sample"),
    "replicationRateByBytes": _autorecovery_as("--throttle"),
    "repairedPlacementPolicyNotAdheringBookieEnabled": _apart,
}
"""What is translated, or looked at."""
