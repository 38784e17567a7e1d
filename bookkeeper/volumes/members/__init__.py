"""Changes which volumes serve, and works on all that do.

members               one is added, fails, is given up, is drained; the bookie's state follows; callers
                      pause while any has too much to write
volume_housekeeping   the scrubs and compactions of all of them, as one
"""
