"""Plans memory: lifetimes, the arena, and results written over inputs. Pure."""
