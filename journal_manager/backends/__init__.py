"""Kinds of places where journals live. Found by entry points, never imported by the framework."""
