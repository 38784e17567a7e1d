"""What several verbs of ``bk`` share, in this package and in those above it.

options           ``--metadata``, ``--json`` and others; connecting; running a coroutine; tables and JSON
answers           what a verb answers: JSON or words, and the exit status; verbs that ask a cluster
amounts           numbers of bytes, as people write them
interruption      Ctrl-C, for verbs that must finish something
line_input        lines as they arrive
streamed_table    rows that are printed as they come
progress          how far a verb has come
verb_audit        lines of the audit log about verbs that change the cluster by themselves
"""

from bookkeeper.admin.command_group import CommandGroup, DefaultCommandGroup
from bookkeeper.admin.shared.amounts import byte_count
from bookkeeper.admin.shared.answers import VerbAnswer, on_cluster, verb_on_cluster
from bookkeeper.admin.shared.interruption import Interruption, note
from bookkeeper.admin.shared.line_input import LineInput
from bookkeeper.admin.shared.options import (
    as_operator_option,
    connected,
    finish,
    given_cluster,
    in_cell,
    json_option,
    ledger_argument,
    metadata_option,
    moment,
    password_option,
    print_json,
    print_table,
    screen_console,
    table_of,
)
from bookkeeper.admin.shared.progress import progress_bar, status_line
from bookkeeper.admin.shared.streamed_table import StreamedTable
from bookkeeper.amounts import counted, size_in_words, state_in_words, time_in_words

__all__ = [
    "CommandGroup",
    "DefaultCommandGroup",
    "Interruption",
    "LineInput",
    "StreamedTable",
    "VerbAnswer",
    "as_operator_option",
    "byte_count",
    "connected",
    "counted",
    "finish",
    "given_cluster",
    "in_cell",
    "json_option",
    "ledger_argument",
    "metadata_option",
    "moment",
    "note",
    "on_cluster",
    "password_option",
    "print_json",
    "print_table",
    "progress_bar",
    "screen_console",
    "size_in_words",
    "state_in_words",
    "status_line",
    "table_of",
    "time_in_words",
    "verb_on_cluster",
]
