"""Jobs that are chains of applications, on nodes that run one application at a time, by ticks."""

from .run import run

__all__ = ["run"]
