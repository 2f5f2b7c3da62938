"""Plans memory: lifetimes, the arena, donation. Pure."""
