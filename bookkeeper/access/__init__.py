"""Who may do what: principals, rights, resources, and the policy that connects them. Pure.

A *principal* is who is at the other end. A *resource* is what somebody wants something of: a stream, a journal, a path
of the gateway, the ledgers of an owner, or the cluster. A *right* is what may be done with it. The *policy* is one
record in the metadata; it grants rights on resources, denies everything else, and is asked by bookies and gateways.
"""

from bookkeeper.access.operations import LedgerOperation, allowed_by
from bookkeeper.access.policy import Decision, Grant, Mode, Policy
from bookkeeper.access.policy_format import decode_policy, encode_policy
from bookkeeper.access.principal import ANYONE, Principal, PrincipalKind, Subject
from bookkeeper.access.resource import CLUSTER, Resource, ResourceKind
from bookkeeper.access.rights import EVERY_RIGHT, Right

__all__ = [
    "ANYONE",
    "CLUSTER",
    "EVERY_RIGHT",
    "Decision",
    "Grant",
    "LedgerOperation",
    "Mode",
    "Policy",
    "Principal",
    "PrincipalKind",
    "Resource",
    "ResourceKind",
    "Right",
    "Subject",
    "allowed_by",
    "decode_policy",
    "encode_policy",
]
