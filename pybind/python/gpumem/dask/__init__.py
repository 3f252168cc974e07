"""The workers of a dask cluster, recorded with the cells of this notebook.

``gpumem.dask.register(client)`` has every worker record itself. At the end of each recorded cell
one message closes an interval on each worker, as a run of that cell, and brings back what is new::

    cluster = gpumem.dask.register(client)
    ...
    print(cluster.report().text())
"""

# isort: split
from gpumem.dask._cluster import Cluster, WorkerSession, register

__all__ = ["Cluster", "WorkerSession", "register"]
