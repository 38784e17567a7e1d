"""``make mutants``: bugs planted in the code that keeps the promises, one at a time; each must be noticed by a test.

mutation.py   what can be planted in a module, as pure functions of its source
sample.py     which packages are looked at, and which of their mutations are chosen
session.py    a pytest session that forks a process for each mutant and runs the tests that reach it
reach.py      which tests reach which lines, and how long they take
document.py   docs/mutants.md
reasons.toml  why a survivor changes nothing that a test should notice
"""
