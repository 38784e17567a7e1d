"""The client with the library's API, against a gateway in the same loop."""

from __future__ import annotations
