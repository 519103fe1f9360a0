"""Show what changes when a machine is switched off."""

import gridwright as gw

system = gw.load("3.A:alpha1:1")
whole = gw.allocate(system)
print(f"all {len(system.machines)} machines: capacity {whole.capacity:.3f}")
for machine in ("T.1", "U.1", "Y.1"):
    found = whole.change(gw.allocate(system, down=[machine]))
    lost = 100 * (1 - found.after / found.before)
    print(f"without {machine}: capacity {found.after:.3f}, {lost:.1f} % less")
