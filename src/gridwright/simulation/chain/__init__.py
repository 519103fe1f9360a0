"""Jobs that are chains of applications, on nodes that run one application at a time, by ticks."""

from .run import check, run

__all__ = ["check", "run"]
