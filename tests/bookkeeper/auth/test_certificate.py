"""Names, roles and ends of certificates."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bookkeeper.auth.certificate import CertificateNames, admitted, not_after
from examples.certificates import Authority


def named(common: str | None = "spark", unit: str | None = None, **alternative: str) -> CertificateNames:
    subject: list[Any] = []
    if unit is not None:
        subject.append((("organizationalUnitName", unit),))
    if common is not None:
        subject.append((("commonName", common),))
    kinds = {"uri": "URI", "mail": "email", "host": "DNS", "address": "IP Address"}
    return CertificateNames.of(
        {"subject": tuple(subject), "subjectAltName": tuple((kinds[kind], name) for kind, name in alternative.items())}
    )


@pytest.mark.rule("X5")
def test_the_principal_is_the_alternative_name_and_the_common_name_only_where_there_is_none() -> None:
    assert named(host="a.example", uri="spiffe://x/spark", mail="a@example.org").principal == "spiffe://x/spark"
    assert named(host="a.example", mail="a@example.org").principal == "a@example.org"
    assert named(address="10.0.0.1", host="a.example").principal == "a.example"
    assert named(address="10.0.0.1").principal == "10.0.0.1"
    assert named().principal == "spark"
    assert named(None).principal is None


@pytest.mark.rule("X5")
@pytest.mark.parametrize(
    ("unit", "roles"),
    [
        ("0:writer", ("writer",)),
        ("0: writer , reader ;1:cluster", ("writer", "reader")),
        ("1:cluster;0:reader", ("reader",)),
        ("Engineering", ()),
        ("1:cluster", ()),
        (None, ()),
    ],
)
def test_roles_are_found_where_java_finds_them(unit: str | None, roles: tuple[str, ...]) -> None:
    assert named(unit=unit).roles == roles


@pytest.mark.rule("X5")
def test_rules_admit_names_and_first_roles() -> None:
    names = named(unit="0:writer,reader", uri="spiffe://x/spark")
    assert admitted(names, allow=(), roles=()) == "spiffe://x/spark"
    assert admitted(names, allow=("spiffe://x/spark",), roles=("writer",)) == "spiffe://x/spark"
    assert admitted(names, allow=("spark",), roles=()) is None, "the common name does not count beside another name"
    assert admitted(names, allow=(), roles=("reader",)) is None, "as in Java: only the first role"
    assert admitted(named(), allow=(), roles=("writer",)) is None
    assert admitted(None, allow=(), roles=()) is None
    assert admitted(named(None), allow=(), roles=()) is None


@pytest.mark.rule("X6")
@pytest.mark.parametrize("days", [1.0, 40 * 365.0])
def test_the_end_of_a_certificate_is_read_from_its_bytes(tmp_path: Path, days: float) -> None:
    made = Authority(tmp_path).server(days=days)
    text = Path(made.cert).read_text()
    der = ssl.PEM_cert_to_DER_cert(text[: text.index("-----END CERTIFICATE-----") + len("-----END CERTIFICATE-----")])
    assert abs(not_after(der) - datetime.now(UTC).timestamp() - days * 86400) < 60
    for cut in range(0, len(der), 7):
        with pytest.raises(ValueError, match="not a certificate"):
            not_after(der[:cut])
