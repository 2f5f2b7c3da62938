"""Defines what each op means: NumPy twins, composites, conversions. Pure."""
