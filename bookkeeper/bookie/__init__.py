"""THE SERVER: requests in, replies out, one disk behind. ``python -m bookkeeper.bookie`` runs one.

Begin with :mod:`~bookkeeper.bookie.lifecycle` (from start to stop), then :mod:`~bookkeeper.bookie.bookie` (what is
answered) and :mod:`~bookkeeper.bookie.server` (how an add travels).
"""

from bookkeeper.bookie.config import BookieConfig, config_from, load_config
from bookkeeper.bookie.lifecycle import BookieServer

__all__ = ["BookieConfig", "BookieServer", "config_from", "load_config"]
