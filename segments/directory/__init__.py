"""The streams of a namespace: their names and their settings.

directory    listing, renaming, listeners
settings     the settings at their path
"""
