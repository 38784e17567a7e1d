"""SASL DIGEST-MD5, as Apache BookKeeper's clients and bookies speak it. Obsolete; here for a cluster with Java.

Read in this order
    directives  the messages' form: a list of directives
    digest_md5  both halves of one exchange
    users       the file of a bookie's users
    providers   the provider ``sasl`` of both sides
"""

from typing import Final

PLUGIN: Final = "sasl"
"""The name of Apache's provider in AUTH messages."""
