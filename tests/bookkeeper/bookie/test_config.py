from __future__ import annotations

from pathlib import Path

import pytest

from bookkeeper.bookie.config import BookieConfig, config_from, load_config, load_storage_config
from bookkeeper.codec import RECORD_MAX
from bookkeeper.errors import ConfigError

LEAST = {"metadata_uri": "memory://x", "directory": "/d"}


def test_a_file_and_what_the_command_line_puts_over_it(tmp_path: Path) -> None:
    file = tmp_path / "bookie.toml"
    file.write_text(
        'metadata_uri = "zk://127.0.0.1/ledgers"\ndirectory = "/d/"\ndrain_s = 3\n[storage]\njournal_dir = "/fast"\n'
    )
    config = load_config(str(file), listen="127.0.0.1:3181", bookie_id=None)
    assert (config.listen, config.drain_s, config.bookie_id) == ("127.0.0.1:3181", 3.0, None)
    assert (config.storage.journal_dir, config.storage.ledger_dir) == ("/fast", "/d/ledgers")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({**LEAST, "lissten": "x"}, "unknown option: lissten"),
        ({**LEAST, "storage": {"journal_size": 5}}, "unknown option: storage.journal_size"),
        ({"directory": "/d"}, "missing option: metadata_uri"),
        ({**LEAST, "frame_max": "5"}, "frame_max must be a whole number"),
        ({**LEAST, "frame_max": True}, "frame_max must be a whole number"),
        ({**LEAST, "insecure": 1}, "insecure must be true or false"),
        ({**LEAST, "frame_max": 5}, "frame_max must be at least 1024 and at most 67108864, not 5"),
        (
            {**LEAST, "frame_max": RECORD_MAX + 1, "in_progress_bytes": 1 << 30, "reserved_bytes": 1 << 30},
            f"frame_max must be at least 1024 and at most {RECORD_MAX}, not {RECORD_MAX + 1}",
        ),
        ({**LEAST, "listen": "nowhere"}, "listen must be HOST:PORT with a port up to 65535, not 'nowhere'"),
        ({**LEAST, "listen": "127.0.0.1:99999"}, "a port up to 65535, not '127.0.0.1:99999'"),
        ({**LEAST, "bookie_id": "a/b"}, "bookie_id: 'a/b' is not a bookie id"),
        ({**LEAST, "storage": {"index_segments": 1}}, "index_segments must be at least 2, not 1"),
        ({**LEAST, "storage": 5}, "storage must be a table"),
    ],
)
def test_what_is_wrong_is_named(options: dict[str, object], named: str) -> None:
    with pytest.raises(ConfigError, match=named.replace(".", r"\.")):
        config_from(options)


@pytest.mark.rule("X1", "X47")
@pytest.mark.parametrize("option", ["listen", "http_listen"])
@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "[::]", "example.org"])
def test_an_address_beyond_loopback_needs_the_word_insecure(option: str, host: str) -> None:
    with pytest.raises(ConfigError, match="insecure = true"):
        config_from({**LEAST, option: f"{host}:3181"})
    assert isinstance(config_from({**LEAST, option: f"{host}:3181", "insecure": True}), BookieConfig)


@pytest.mark.rule("X60")
@pytest.mark.parametrize(
    ("options", "needs"),
    [
        ({}, False),
        ({"tls": {"cert": "c", "key": "k"}}, True),
        ({"auth": {"provider": "token", "options": {"file": "t"}}}, True),
        ({"http_api": {"listen": "127.0.0.1:0", "token_file": "t"}}, True),
    ],
)
def test_a_process_with_keys_or_tokens_is_told_from_one_without(options: dict[str, object], needs: bool) -> None:
    assert config_from({**LEAST, **options}).needs_secrets is needs


@pytest.mark.rule("X1", "X47")
def test_health_and_metrics_beyond_loopback_do_not_open_the_port_of_the_data() -> None:
    """Cause: only ``insecure`` allowed pages for a scraper on another host, and it opened the data to everyone, too."""
    shown = {**LEAST, "http_listen": "0.0.0.0:8080"}
    with pytest.raises(ConfigError, match="http_insecure = true, which opens these pages and nothing else"):
        config_from(shown)
    assert config_from({**shown, "http_insecure": True}).http_listen == "0.0.0.0:8080"
    with pytest.raises(ConfigError, match="without authentication and encryption"):
        config_from({**shown, "http_insecure": True, "listen": "0.0.0.0:3181"})


CERTIFICATE = {"cert": "/c", "client_ca": "/a"}


@pytest.mark.rule("X1")
def test_beyond_loopback_encryption_and_authentication_will_do_as_well() -> None:
    beyond = {**LEAST, "listen": "0.0.0.0:3181"}
    assert config_from({**beyond, "tls": CERTIFICATE}).auth_provider == "tls"
    with_own_provider = {"tls": {"cert": "/c"}, "auth": {"provider": "my.auth:provider"}}
    assert config_from({**beyond, **with_own_provider}).auth_provider == "my.auth:provider"


@pytest.mark.rule("X1")
@pytest.mark.parametrize(
    "options",
    [
        {"tls": {"cert": "/c"}},
        {"tls": {**CERTIFICATE, "mode": "off"}},
        {"tls": {**CERTIFICATE, "mode": "offered"}, "auth": {"provider": "my.auth:provider"}},
        {"tls": CERTIFICATE, "auth": {"provider": "none"}},
        {"auth": {"provider": "my.auth:provider"}},
    ],
)
def test_beyond_loopback_one_of_the_two_is_not_enough(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="insecure = true"):
        config_from({**LEAST, "listen": "0.0.0.0:3181", **options})


IDENTITY = {"BK_ZOOKEEPER_USER": "bookkeeper", "BK_ZOOKEEPER_PASSWORD": "secret"}


@pytest.mark.rule("X1", "X26")
@pytest.mark.parametrize("uri", ["zk://127.0.0.1:2181/ledgers", "zk+hierarchical://zk1:2181;zk2:2181/ledgers"])
def test_beyond_loopback_zookeeper_knows_the_bookie(monkeypatch: pytest.MonkeyPatch, uri: str) -> None:
    for name in ("BK_ZOOKEEPER", *IDENTITY):
        monkeypatch.delenv(name, raising=False)
    beyond = {**LEAST, "metadata_uri": uri, "listen": "0.0.0.0:3181", "tls": CERTIFICATE}
    with pytest.raises(ConfigError) as error:
        config_from(beyond)
    for named in ("BK_ZOOKEEPER_USER", "BK_ZOOKEEPER_PASSWORD", "BK_ZOOKEEPER names", "insecure = true"):
        assert named in str(error.value)
    assert config_from({**beyond, "insecure": True}).insecure
    assert not config_from({**beyond, "listen": "127.0.0.1:3181"}).insecure
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)
    assert not config_from(beyond).insecure


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"tls": {"certificate": "/c"}}, "unknown option: tls.certificate"),
        ({"auth": {"provider": "tls"}}, 'provider "tls" needs tls.client_ca'),
        ({"auth": {"provider": "my.auth:provider", "required": True}}, "auth.required is an option of clients"),
        ({"tls": {**CERTIFICATE, "mode": "offered"}}, 'needs tls.mode = "required"'),
        (
            {"tls": {**CERTIFICATE, "roles": ["spark"]}, "auth": {"provider": "none"}},
            'tls.roles need auth.provider "tls"',
        ),
    ],
)
def test_authentication_that_could_be_passed_by_is_refused(options: dict[str, object], named: str) -> None:
    with pytest.raises(ConfigError) as error:
        config_from({**LEAST, **options})
    assert named in str(error.value)


@pytest.mark.rule("Z9")
@pytest.mark.parametrize("seconds", [0.5, 0, -1, 400, float("nan")])
def test_how_long_the_session_with_the_metadata_store_lasts_has_limits(seconds: float) -> None:
    assert config_from(LEAST).metadata_session_s == 10
    assert config_from({**LEAST, "metadata_session_s": 4}).metadata_session_s == 4
    with pytest.raises(ConfigError, match=f"metadata_session_s must be at least 1 and at most 300, not {seconds}"):
        config_from({**LEAST, "metadata_session_s": seconds})
    with pytest.raises(ConfigError, match="unknown option: metadata_session_ms"):
        config_from({**LEAST, "metadata_session_ms": 4000})


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "[::1]", "localhost"])
def test_loopback_needs_nothing(host: str) -> None:
    assert config_from({**LEAST, "listen": f"{host}:3181"}).insecure is False


def test_files_that_cannot_be_read_are_errors_of_the_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothing"):
        load_config(str(tmp_path / "nothing"))
    (tmp_path / "bad").write_text("= 5")
    with pytest.raises(ConfigError, match="bad"):
        load_config(str(tmp_path / "bad"))


def test_the_storage_of_a_bookie_that_does_not_run_needs_no_cluster(tmp_path: Path) -> None:
    found = load_storage_config(None, "/b")
    assert (found.journal_dir, found.ledger_dir) == ("/b/journal", "/b/ledgers")
    found = load_storage_config(None, "/b", journal_dir="/fast", ledger_dir=None)
    assert (found.journal_dir, found.ledger_dir) == ("/fast", "/b/ledgers")
    file = tmp_path / "b.toml"
    file.write_text('directory = "/elsewhere"\n[storage]\njournal_dir = "/j"\nentry_log_bytes = 10000\n')
    found = load_storage_config(str(file), "/b")
    assert (found.journal_dir, found.ledger_dir, found.entry_log_bytes) == ("/j", "/b/ledgers", 10000)
    for text, reason in (("storage = 3\n", "table of options"), ("[storage]\nx = 1\n", "x"), ("=", "b.toml")):
        file.write_text(text)
        with pytest.raises(ConfigError, match=reason):
            load_storage_config(str(file), "/b")


# -- several ledger directories ---------------------------------------------------------------------------


def test_several_ledger_directories_each_have_a_journal() -> None:
    one = config_from(LEAST)
    assert one.volume_directories == () and one.data_directories == ["/d/journal", "/d/ledgers"]
    beside = config_from({**LEAST, "ledger_dirs": ["/a/", "/b"]})
    assert beside.volume_directories == (("/a", "/a"), ("/b", "/b")) and beside.data_directories == ["/a", "/b"]
    apart = config_from({**LEAST, "ledger_dirs": ["/a", "/b"], "journal_dirs": ["/ja", "/jb"]})
    assert apart.volume_directories == (("/a", "/ja"), ("/b", "/jb"))
    assert apart.data_directories == ["/ja", "/a", "/jb", "/b"]
    assert (apart.storage.ledger_dir, apart.storage.journal_dir) == ("/a", "/ja")
    alone = config_from({**LEAST, "ledger_dirs": ["/a"]})
    assert alone.volume_directories == (("/a", "/a"),), "it can be given more"


def test_ledger_directories_are_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "bookie.toml"
    file.write_text('metadata_uri = "zk://127.0.0.1/l"\ndirectory = "d"\nledger_dirs = ["x", "y/../z"]\n')
    assert load_config(str(file)).ledger_dirs == (f"{tmp_path}/x", f"{tmp_path}/z")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"ledger_dirs": ["/a", "/b", "/a/"]}, "ledger_dirs names /a twice; each ledger directory needs its own"),
        ({"ledger_dirs": ["/a", "/b"], "journal_dirs": ["/j", "/j"]}, "journal_dirs names /j twice"),
        ({"ledger_dirs": ["/a", "/b"], "journal_dirs": ["/j"]}, "for each of ledger_dirs: 1 for 2"),
        ({"ledger_dirs": ["/a"], "journal_dirs": ["/j", "/k"]}, "for each of ledger_dirs: 2 for 1"),
        ({"journal_dirs": ["/j"]}, "journal_dirs needs ledger_dirs; the journal of one ledger directory is storage."),
        ({"ledger_dirs": ["/a", ""]}, "ledger_dirs has an empty name; each must be a directory"),
        ({"ledger_dirs": ["/a", "/d"]}, "ledger_dirs names the bookie's own directory, /d"),
        ({"ledger_dirs": ["/a"], "journal_dirs": ["/d/"]}, "journal_dirs names the bookie's own directory, /d"),
        ({"ledger_dirs": ["/a", "/a/b"]}, "ledger_dirs has /a/b, which lies in /a; take another directory"),
        ({"ledger_dirs": ["/a"], "storage": {"ledger_dir": "/x"}}, "give ledger_dirs or storage.ledger_dir, not both"),
        ({"ledger_dirs": ["/a"], "storage": {"journal_dir": "/x"}}, "give ledger_dirs or storage.journal_dir, not"),
        ({"ledger_dirs": "/a"}, "ledger_dirs must be"),
        ({"ledger_dirs": ["/a", 5]}, "ledger_dirs"),
        ({"ledger_dirs": ["/a"], "storage": 5}, "storage must be a table"),
    ],
)
def test_ledger_directories_that_do_not_fit_are_refused(options: dict[str, object], named: str) -> None:
    with pytest.raises(ConfigError) as raised:
        config_from({**LEAST, **options})
    assert named in str(raised.value)


def test_directories_with_like_names_do_not_lie_in_one_another() -> None:
    assert config_from({**LEAST, "ledger_dirs": ["/a", "/ab"]}).ledger_dirs == ("/a", "/ab")


@pytest.mark.parametrize("name", ["ledger_dirs", "journal_dirs"])
def test_one_directory_under_two_names_is_refused(name: str, tmp_path: Path) -> None:
    """As two it would fail as one."""
    for each in ("a", "b", "c"):
        (tmp_path / each).mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    options = {
        "metadata_uri": "memory:x",
        "directory": str(tmp_path / "home"),
        "ledger_dirs": [str(tmp_path / "b"), str(tmp_path / "c")],
    }
    assert config_from({**options, name: [str(tmp_path / "link"), str(tmp_path / "b")]})
    with pytest.raises(ConfigError, match=f"{name} names one directory twice: {tmp_path}/a and {tmp_path}/link are"):
        config_from({**options, name: [str(tmp_path / "a"), str(tmp_path / "link")]})
