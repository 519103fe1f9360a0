"""Dask with unequal workers: a policy decides where the tasks of a Dask cluster run.

client.register_plugin(gridwright.dask.Placement("pas_dg"))
"""

from .placement import Placement

__all__ = ["Placement"]
