"""How WebHDFS carries tokens (``authentication``), and what their owners may do (``operation_rights``). Who asks is
known by ``bookkeeper.gateways``."""
