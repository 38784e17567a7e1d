"""Who did what, or was refused: one line of JSON each, in a file of its own or in the log (X16).

:class:`AuditLog` is what others hold: ``note`` an event, and go on. ``audit_event.py`` says what an event is and how
its line looks, ``audit_queue.py`` decides which lines wait and which are counted instead, ``audit_file.py`` keeps the
file, and ``audit_log.py`` performs. ``config.py`` has the settings.
"""

from bookkeeper.audit.audit_event import AuditAction, AuditEvent
from bookkeeper.audit.audit_log import NO_AUDIT, AuditLog, NullAuditLog, open_audit_log
from bookkeeper.audit.config import AuditConfig

__all__ = ["NO_AUDIT", "AuditAction", "AuditConfig", "AuditEvent", "AuditLog", "NullAuditLog", "open_audit_log"]
