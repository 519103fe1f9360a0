"""Compute how much these machines can do, and which machine should serve which class."""

import gridwright as gw

system = gw.System(
    name="lab",
    classes=["simulation", "plotting"],
    groups=["server", "desktop"],
    arrivals=[5, 8],
    rates=[[8, 3], [4, 10]],
)
found = gw.allocate(system)
print(f"capacity {found.capacity:.4f}, load {100 * found.load:.0f} %")
for name, shares in zip(system.classes, found.shares, strict=True):
    parts = [
        f"{share:.0%} of {machine}"
        for share, machine in zip(shares, system.machines, strict=True)
        if share
    ]
    print(f"{name}: {', '.join(parts)}")
print(found.verdict.words)
