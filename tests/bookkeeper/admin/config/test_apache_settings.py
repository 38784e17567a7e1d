"""What the settings of an Apache bookie are here."""

from __future__ import annotations

import pytest

from bookkeeper.admin.config.apache_names import NOTED
from bookkeeper.admin.config.apache_settings import RULES, SettingKind, Translation, translate
from bookkeeper.bookie.config import config_from

BASE = {"metadataServiceUri": "zk+hierarchical://zk1:2181;zk2:2181/ledgers"}


def translated(**settings: str) -> Translation:
    return translate({**BASE, **settings}, directory="/data/bk")


def fate(name: str, value: str, **others: str) -> tuple[SettingKind, str]:
    found = translated(**{**others, name: value})
    (each,) = (each for each in found.fates if each.name == name)
    return each.fate, each.text


def test_a_file_becomes_settings_with_which_a_bookie_can_start() -> None:
    found = translated(
        bookiePort="3181",
        advertisedAddress="bk1.example.org",
        bookieId="bk1.example.org:3181",
        journalDirectories="/journal",
        ledgerDirectories="/data1/",
        logSizeLimit="1073741824",
        gcWaitTime="900000",
        zkTimeout="30000",
        minorCompactionThreshold="0.3",
        forceReadOnlyBookie="true",
        autoRecoveryDaemonEnabled="true",
        statsProviderClass="org.apache.bookkeeper.stats.prometheus.PrometheusMetricsProvider",
        prometheusStatsHttpPort="9100",
    )
    assert not found.refused()
    made = config_from({**found.options, "insecure": True})
    assert (made.listen, made.advertise, made.bookie_id) == (
        "0.0.0.0:3181",
        "bk1.example.org:3181",
        "bk1.example.org:3181",
    )
    assert (made.storage.journal_dir, made.storage.ledger_dir) == (
        "/journal/bookkeeper-py-journal",
        "/data1/bookkeeper-py",
    )
    assert (made.storage.entry_log_bytes, made.garbage_interval_s, made.metadata_session_s) == (2**30, 900, 30)
    assert (made.storage.minor_compaction_ratio, made.read_only, made.autorecovery) == (0.3, True, True)
    assert (made.http_listen, made.http_insecure) == ("0.0.0.0:9100", True)


def test_each_of_several_disks_has_its_journal() -> None:
    both = translated(ledgerDirectories="/d1,/d2", journalDirectories="/j1, /j2")
    assert both.options["ledger_dirs"] == ["/d1/bookkeeper-py", "/d2/bookkeeper-py"]
    assert both.options["journal_dirs"] == ["/j1/bookkeeper-py-journal", "/j2/bookkeeper-py-journal"]
    assert "journal_dirs" not in translated(ledgerDirectories="/d1,/d2", journalDirectory="/j").options
    assert fate("journalDirectories", "/j1,/j2", ledgerDirectories="/d1")[0] is SettingKind.REFUSED


def test_servers_of_zookeeper_stand_for_the_address() -> None:
    old = translate({"zkServers": "zk1:2181,zk2:2181", "zkLedgersRootPath": "/other"}, directory="/d")
    assert old.options["metadata_uri"] == "zk://zk1:2181,zk2:2181/other"
    assert translated(zkServers="elsewhere:1").options["metadata_uri"] == BASE["metadataServiceUri"]
    assert fate("metadataServiceUri", "etcd:http://h:2379/root")[0] is SettingKind.REFUSED


def test_settings_of_autorecovery_are_options_of_its_own_process() -> None:
    found = translated(
        autoRecoveryDaemonEnabled="true",
        lostBookieRecoveryDelay="60",
        openLedgerRereplicationGracePeriod="45000",
        auditorPeriodicCheckInterval="604800",
    )
    assert found.autorecovery == ["--lost-bookie-delay", "60", "--grace", "45", "--check-every", "168"]
    assert "autorecovery" not in found.options, "inside a bookie it would run without them"


def test_tls_is_taken_over_from_pem_files_alone() -> None:
    pem = {
        "tlsKeyStoreType": "PEM",
        "tlsKeyStore": "/key.pem",
        "tlsCertificatePath": "/cert.pem",
        "tlsTrustStoreType": "PEM",
        "tlsTrustStore": "/ca.pem",
        "tlsClientAuthentication": "true",
    }
    on = {"tlsProviderFactoryClass": "org.apache.bookkeeper.tls.TLSContextFactory"}
    assert translated(**pem, **on).options["tls"] == {"cert": "/cert.pem", "key": "/key.pem", "client_ca": "/ca.pem"}
    assert "tls" not in translated(**pem).options, "without a provider Apache's bookie has none, either"
    for change in ({"tlsKeyStoreType": "JKS"}, {"tlsTrustStoreType": "PKCS12"}, {"tlsCertificatePath": ""}):
        assert [each.name for each in translated(**{**pem, **on, **change}).refused()] == ["tlsProviderFactoryClass"]
    roles = translated(**pem, **on, authorizedRoles="a, b")
    assert roles.options["tls"]["roles"] == ["a", "b"]
    assert fate("authorizedRoles", "a")[0] is SettingKind.REFUSED


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("zkEnableSecurity", "true"),
        ("extraServerComponents", "a.B"),
        ("listeningInterface", "eth0"),
        ("useHostNameAsBookieID", "true"),
        ("readOnlyModeEnabled", "false"),
        ("persistBookieStatusEnabled", "true"),
        ("httpServerEnabled", "true"),
        ("skipReplayJournalInvalidRecord", "true"),
        ("bookieAuthProviderFactoryClass", "a.B"),
        ("statsProviderClass", "a.B"),
        ("tlsKeyStorePasswordPath", "/p"),
        ("bookiePort", "three"),
        ("forceReadOnlyBookie", "maybe"),
    ],
)
def test_what_would_behave_otherwise_is_refused_by_name(name: str, value: str) -> None:
    found = translated(**{name: value})
    assert [each.name for each in found.refused()] == [name]
    assert found.refused()[0].text
    assert not found.refused(left_out=[name]), "an operator may go on without it"


def test_an_unknown_setting_is_refused_with_the_nearest_name() -> None:
    assert fate("bookiePrt", "3181") == (
        SettingKind.REFUSED,
        "Apache's bookies have no such setting; did you mean bookiePort?",
    )
    assert fate("bookiePrt", "")[0] is SettingKind.REFUSED, "without a value, too"


def test_what_means_nothing_here_says_why_and_a_setting_without_value_is_not_given() -> None:
    assert fate("numReadWorkerThreads", "8") == (SettingKind.NOTED, NOTED["numReadWorkerThreads"])
    for empty in ("", "null"):
        assert fate("bookieId", empty) == (SettingKind.NOTED, "it has no value")
    assert "bookie_id" not in translated(bookieId="").options


def test_limits_in_entries_are_no_limits_in_bytes() -> None:
    assert "storage" not in translated(compactionRateByBytes="5").options
    by_bytes = translated(compactionRateByBytes="5000000", isThrottleByBytes="true")
    assert by_bytes.options["storage"]["compaction_bytes_per_s"] == 5_000_000


def test_a_limit_of_one_kind_of_compaction_is_none_for_both() -> None:
    one = translated(minorCompactionMaxTimeMillis="60000", majorCompactionMaxTimeMillis="-1")
    assert one.options["storage"]["compaction_run_s"] == 0.0
    both = translated(minorCompactionMaxTimeMillis="60000", majorCompactionMaxTimeMillis="120000")
    assert both.options["storage"]["compaction_run_s"] == 120.0


@pytest.mark.parametrize("name", sorted(RULES))
def test_every_rule_answers_any_text_in_words(name: str) -> None:
    for value in ("true", "false", "1", "-1", "x", "a,b"):
        kind, text = fate(name, value)
        assert isinstance(kind, SettingKind) and text, (name, value)
