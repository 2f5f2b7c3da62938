"""Defines what each op means: NumPy twins, composites, conversions, op-by-op runs. Pure."""
