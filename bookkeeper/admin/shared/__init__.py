"""What several verbs of ``bk`` share, in this package and in those above it.

options           ``--metadata``, ``--json`` and others; connecting; running a coroutine; tables and JSON
answers           what a verb answers: JSON or words, and the exit status; verbs that ask a cluster
amounts           numbers of bytes, as people write them
interruption      Ctrl-C, for verbs that must finish something
line_input        lines as they arrive
streamed_table    rows that are printed as they come
terminal          text of others, for a terminal
progress          how far a verb has come
verb_audit        lines of the audit log about verbs that change the cluster by themselves
"""
