"""The workers of a Ray cluster, recorded wherever they run.

``gpumem.ray.init()`` starts or joins the cluster as ``ray.init()`` does, and has each process of a
worker or an actor record itself: each call of a function that ``@gpumem.record`` decorates, and
each ``with gpumem.record(name):``. An actor on each machine hands in what was recorded there::

    cluster = gpumem.ray.init(address="auto")
    ...
    print(cluster.report().text())
"""

# isort: split
from gpumem.ray._cluster import Cluster, init

__all__ = ["Cluster", "init"]
