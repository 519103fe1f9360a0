"""Draw execution times of a given heterogeneity, and make systems from them."""

import numpy as np

import gridwright as gw

times = gw.etc.cvb((4, 6), np.random.default_rng(3), mean=10, task_cv=0.9, machine_cv=0.3)
system = gw.System(arrivals=[0.1, 0.1, 0.1, 0.1], rates=1 / times)
found = gw.heterogeneity(system)
print(f"heterogeneity of tasks {found.task:.2f}, of machines {found.machine:.2f}")
print(f"capacity {gw.allocate(system).capacity:.4f}")
