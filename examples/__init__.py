"""Short programs for Fusewire. Each runs on NumPy too: `xp` is the array module, `numpy` or `fusewire`."""
