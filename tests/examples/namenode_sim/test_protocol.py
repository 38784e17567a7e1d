"""Questions and answers as lines."""

from __future__ import annotations

import pytest

from examples.namenode_sim.decisions import ClientRequest
from examples.namenode_sim.errors import InodeExistsError, NamespaceError, ReplicaNotActiveError, RequestError
from examples.namenode_sim.protocol import Question, decode_answer, decode_question, encode_answer, encode_error


def test_a_question_is_read_back_as_a_request() -> None:
    question = Question("create", {"path": "/größe\n"}, "ab" * 16, 7)
    assert question.encode().count(b"\n") == 1
    assert decode_question(question.encode()) == question
    assert question.request() == ClientRequest("create", {"path": "/größe\n"}, b"\xab" * 16, 7)


@pytest.mark.parametrize("line", [b"", b"x\n", b"[]\n", b'{"ask": 5}\n', b'{"ask": "a", "b": 1}\n', b"\xff\n"])
def test_what_is_no_question_is_refused(line: bytes) -> None:
    with pytest.raises(RequestError, match="no question"):
        decode_question(line)


def test_a_client_without_an_id_of_its_own_is_refused() -> None:
    with pytest.raises(RequestError, match="no client's id"):
        Question("create", {}, "xyz").request()


def test_answers() -> None:
    assert decode_answer(encode_answer({"a": None})) == {"a": None}
    with pytest.raises(NamespaceError, match="there already"):
        decode_answer(encode_error(InodeExistsError("there already")))
    with pytest.raises(ReplicaNotActiveError, match="nn1 is standby"):
        decode_answer(encode_error(ReplicaNotActiveError("nn1 is standby")))
    with pytest.raises(ReplicaNotActiveError, match="in the middle"):
        decode_answer(encode_answer(5)[:-1])
