"""Reading edits.

edit_reader     from the segments of one journal: in order, each once
merged_reader   from several journals that hold copies of one log
tailer          on and on, across rolls, takeovers and recoveries
"""

from journal_manager.read.edit_reader import read_ops, read_runs
from journal_manager.read.merged_reader import read_ops_over
from journal_manager.read.tailer import tail, tail_runs

__all__ = [
    "read_ops",
    "read_ops_over",
    "read_runs",
    "tail",
    "tail_runs",
]
