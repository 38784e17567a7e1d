from __future__ import annotations

import copy
import pickle
import traceback
from pathlib import Path
from typing import Any

import pytest

from bookkeeper.errors import ConfigError
from bookkeeper.meta.stores.credentials import Credentials, ZooKeeperTls, from_environment
from bookkeeper.secret import Secret


def written(tmp_path: Path, text: str, mode: int = 0o600) -> dict[str, str]:
    path = tmp_path / "zookeeper.toml"
    path.write_text(text)
    path.chmod(mode)
    return {"BK_ZOOKEEPER": str(path)}


def test_an_empty_environment_is_nobody() -> None:
    assert from_environment({}) == Credentials()
    assert not from_environment({}).identified
    assert from_environment({}).name == "nobody"


def test_user_and_password_come_from_the_environment(tmp_path: Path) -> None:
    environment = {"BK_ZOOKEEPER_USER": "bk", "BK_ZOOKEEPER_PASSWORD": "pw"}
    found = from_environment(environment)
    assert (found.user, found.password, found.scheme) == ("bk", Secret("pw"), "digest")
    assert found.identified
    over = from_environment(environment | written(tmp_path, 'user = "x"\npassword = "y"\nreaders = ["sasl:m"]\n'))
    assert (over.user, over.password, over.readers) == ("bk", Secret("pw"), (("sasl", "m"),))


def test_everything_comes_from_the_file(tmp_path: Path) -> None:
    for name in ("ca", "cert", "key"):
        (tmp_path / name).touch()
    (tmp_path / "password").write_text("pw\n")
    (tmp_path / "password").chmod(0o400)
    text = f"""
user = "bk"
password_file = "{tmp_path}/password"
readers = ["digest:monitor:c2hhMQ==", "world:anyone"]
[tls]
ca = "{tmp_path}/ca"
certificate = "{tmp_path}/cert"
key = "{tmp_path}/key"
insecure_any_host = true
"""
    assert from_environment(written(tmp_path, text, 0o644)) == Credentials(
        user="bk",
        password=Secret("pw"),
        readers=(("digest", "monitor:c2hhMQ=="), ("world", "anyone")),
        tls=ZooKeeperTls(f"{tmp_path}/ca", f"{tmp_path}/cert", f"{tmp_path}/key", insecure_any_host=True),
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("colour = 1", "unknown setting: colour"),
        ("[tls]\ncolour = 1", "unknown setting: tls.colour"),
        ('user = "bk"', "a user needs a password"),
        ('user = "bk"\npassword = "x"\nscheme = "kerberos"', "digest or sasl"),
        ('readers = ["monitor"]', "SCHEME:ID"),
        ('[tls]\ncertificate = "/x"', "must be given together"),
        ('[tls]\nca = "/nowhere/ca.pem"', "no file /nowhere/ca.pem"),
        ("tls = 1", "a section"),
        ("user =", "Invalid value"),
    ],
)
def test_a_setting_that_is_wrong_is_named(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        from_environment(written(tmp_path, text))


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match=r"/nowhere/zookeeper\.toml"):
        from_environment({"BK_ZOOKEEPER": "/nowhere/zookeeper.toml"})


@pytest.mark.rule("X58")
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602])
def test_a_password_that_others_may_touch_is_refused(tmp_path: Path, mode: int) -> None:
    """Cause: only a file that everybody could read was refused, not one of a group."""
    with pytest.raises(ConfigError, match="chmod 600"):
        from_environment(written(tmp_path, 'user = "bk"\npassword = "pw"\n', mode))
    (tmp_path / "password").write_text("pw")
    (tmp_path / "password").chmod(mode)
    with pytest.raises(ConfigError, match="chmod 600"):
        from_environment(written(tmp_path, f'user = "bk"\npassword_file = "{tmp_path}/password"\n', 0o644))


@pytest.mark.rule("X58")
def test_a_secret_does_not_show(tmp_path: Path) -> None:
    found = from_environment(written(tmp_path, 'user = "bk"\npassword = "planted"\n'))
    assert "planted" not in f"{found!r} {found} {found.password!r} {found.password}"
    assert found.password is not None
    assert found.password.reveal() == "planted"
    for job in (pickle.dumps, copy.copy):
        with pytest.raises(TypeError):
            job(found.password)
    try:
        fails(found)
    except ZeroDivisionError as error:
        shown = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    assert "planted" not in shown


def fails(credentials: Credentials) -> Any:
    secret = credentials.password
    return 1 / 0 if secret else None


@pytest.mark.rule("X28")
@pytest.mark.parametrize("hosts", ["127.0.0.1:2181", "localhost:2181,[::1]:2181", "127.0.0.1"])
def test_digest_credentials_may_go_around_in_one_machine(hosts: str) -> None:
    Credentials(user="bk", password=Secret("pw")).check_way(hosts)


@pytest.mark.rule("X28")
def test_digest_credentials_leave_the_machine_encrypted_or_by_order() -> None:
    def way(**settings: Any) -> None:
        Credentials(user="bk", password=Secret("pw"), **settings).check_way("127.0.0.1:2181,zk1.example:2181")

    with pytest.raises(ConfigError, match=r"digest credentials.*zk1\.example"):
        way()
    way(tls=ZooKeeperTls())
    way(scheme="sasl")
    way(send_in_clear=True)
