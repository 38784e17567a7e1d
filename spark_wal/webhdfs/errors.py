"""The errors that a client can get: Hadoop's exceptions by name, and the HTTP status of each.

A refused request changes nothing, neither in memory nor in the journal. Clients decide by the Java class name; people
read the first line of the message.
"""

from __future__ import annotations

from typing import ClassVar


class WebHdfsError(Exception):
    """The base class of refusals; a client gets each as a RemoteException."""

    java_class: ClassVar[str] = "java.io.IOException"
    status: ClassVar[int] = 403

    @property
    def name(self) -> str:
        """The simple class name, as in ``RemoteException.exception``."""
        return self.java_class.rsplit(".", 1)[-1].rsplit("$", 1)[-1]


class PlainIOError(WebHdfsError):
    """A plain java.io.IOException."""


class NoSuchFileError(WebHdfsError):
    java_class = "java.io.FileNotFoundException"
    status = 404


class PathExistsError(WebHdfsError):
    java_class = "org.apache.hadoop.fs.FileAlreadyExistsException"


class ParentNotDirectoryError(WebHdfsError):
    java_class = "org.apache.hadoop.fs.ParentNotDirectoryException"


class PathThroughFileError(WebHdfsError):
    """The path leads through a file. When reading, Hadoop calls this an access control failure."""

    java_class = "org.apache.hadoop.security.AccessControlException"


class AccessDeniedError(WebHdfsError):
    """The client is known and may not do this."""

    java_class = "org.apache.hadoop.security.AccessControlException"


class DirectoryNotEmptyError(WebHdfsError):
    java_class = "org.apache.hadoop.fs.PathIsNotEmptyDirectoryException"


class InvalidPathError(WebHdfsError):
    java_class = "org.apache.hadoop.fs.InvalidPathException"
    status = 400


class NameTooLongError(WebHdfsError):
    java_class = "org.apache.hadoop.hdfs.protocol.FSLimitException$PathComponentTooLongException"


class QuotaExceededError(WebHdfsError):
    java_class = "org.apache.hadoop.hdfs.protocol.DSQuotaExceededException"


class NameQuotaExceededError(WebHdfsError):
    java_class = "org.apache.hadoop.hdfs.protocol.NSQuotaExceededException"


class EndOfFileError(WebHdfsError):
    java_class = "java.io.EOFException"


class IllegalArgumentError(WebHdfsError):
    java_class = "java.lang.IllegalArgumentException"
    status = 400


class UnsupportedError(WebHdfsError):
    java_class = "java.lang.UnsupportedOperationException"
    status = 400


class WebApplicationError(WebHdfsError):
    java_class = "javax.ws.rs.WebApplicationException"
    status = 500


class StandbyError(WebHdfsError):
    """Another gateway owns the namespace. A client that knows several gateways asks the next one."""

    java_class = "org.apache.hadoop.ipc.StandbyException"


class RateExceededError(WebHdfsError):
    """The client's rates are used up. Its retry policy waits and asks again."""

    java_class = "org.apache.hadoop.ipc.RetriableException"
    status = 429

    def __init__(self, message: str, after_s: int) -> None:
        """``after_s``: seconds after which the same is admitted, if nothing else comes before."""
        super().__init__(message)
        self.after_s = after_s


class RetriableError(WebHdfsError):
    """No owner of the namespace is known now. The client's retry policy waits and asks again."""

    java_class = "org.apache.hadoop.ipc.RetriableException"
