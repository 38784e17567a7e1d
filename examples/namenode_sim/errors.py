"""Why a name node refuses: the request does not fit the namespace, or the edit does not."""

from __future__ import annotations


class NamespaceError(Exception):
    """What is asked for is impossible in this namespace. Nothing was changed."""


class InodeMissingError(NamespaceError):
    """There is nothing at this path."""


class InodeExistsError(NamespaceError):
    """There is something at this path already."""


class InodeKindError(NamespaceError):
    """The path leads to something else: a file where a directory is needed, or the other way round."""


class OpenFileError(NamespaceError):
    """The file is open for writing where it should not be, or is not where it should be."""


class ReplayError(Exception):
    """An edit does not fit this namespace, so edits were lost, repeated, or belong to another one."""


class UnsupportedOpError(ReplayError):
    """An edit of a kind that this simulation does not keep."""


class RequestError(NamespaceError):
    """What is asked for is no request of this name node, or has arguments that do not fit."""


class ReplicaNotActiveError(Exception):
    """This name node is not the active one, or is not any more. What was asked for may have happened or not."""


class NoAnswerError(Exception):
    """Nobody answered in time. The outcome is unknown."""
