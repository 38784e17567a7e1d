"""Writing edits.

edit_log_config   its settings
edit_log          numbers edits, makes them durable in groups, rolls segments
journal_steps     what changes the journal: one step at a time, each to its end
growing_segment   the segment that is appended to; steps that are repeated while the store does not answer
double_buffer     the edits that are being collected, and those that are being synced (pure)
measured_writer   a journal's writer that keeps figures of what it does
"""

from journal_manager.write.edit_log import EditLog
from journal_manager.write.edit_log_config import EditLogConfig
from journal_manager.write.measured_writer import JournalFigures, JournalStats, MeasuredWriter

__all__ = [
    "EditLog",
    "EditLogConfig",
    "JournalFigures",
    "JournalStats",
    "MeasuredWriter",
]
