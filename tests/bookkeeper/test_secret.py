from __future__ import annotations

import copy
import pickle
import traceback

import pytest

from bookkeeper.secret import Secret, without_secrets


@pytest.mark.rule("X59")
def test_a_secret_does_not_show_itself() -> None:
    secret = Secret("hunter2")
    shown = [repr(secret), str(secret), f"{secret}", f"{secret!r}", repr([secret]), repr({"a": secret})]
    try:
        raise ValueError(secret)
    except ValueError:
        shown.append(traceback.format_exc())
    assert not [text for text in shown if "hunter2" in text]
    for take in (pickle.dumps, copy.copy):
        with pytest.raises(TypeError):
            take(secret)
    with pytest.raises(TypeError):
        hash(secret)
    assert secret.reveal() == "hunter2"


def test_secrets_compare_by_what_they_hold() -> None:
    assert Secret("a") == Secret("a")
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"


@pytest.mark.rule("X59")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("bk+zk://h/l?name=a&password=planted&digest=hmac", "bk+zk://h/l?name=a&password=***&digest=hmac"),
        ("cannot reach 'x:///d?Password=planted' now", "cannot reach 'x:///d?Password=***' now"),
        ("zk://user:planted@h:1/l and zk://g/l", "zk://***@h:1/l and zk://g/l"),
        ("x:y?token=planted", "x:y?token=***"),
        ("sqlite:///a/b?c=d", "sqlite:///a/b?c=d"),
    ],
)
def test_an_address_is_shown_without_its_secrets(text: str, shown: str) -> None:
    assert without_secrets(text) == shown
