"""Writing a ledger: what applications hold, and the shell around ``ledger.writer``.

write_handle, advanced_handle   appending, with entry ids given here or by the application
append_futures, packets         who waits for which entry; frames that may have to be sent again
writer_shell                    effects performed, events reported
add_channel                     the adds of one writer to one bookie
ensemble_change                 stand-ins found, and the change recorded by compare-and-set
missing_copies                  what a writer leaves for those who re-replicate
incarnation_watch               a bookie that failed and answers again: is it the same incarnation?
retry_pauses, lac_turns         machines: when a failed bookie is tried again, when a last add confirmed goes out alone
"""
