"""Bugs, planted to test the simulator. No production code knows of them.

bugs            all of them: by rooms of the production code, each with the rule that it breaks
deletion_bugs   a part of them: deletion and undeletion
volume_bugs     a part of them: several ledger directories
bug             what a planted bug is
"""
