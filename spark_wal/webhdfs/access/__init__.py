"""How WebHDFS carries tokens, and what their owners may do. Who asks is known by ``bookkeeper.gateways``."""
