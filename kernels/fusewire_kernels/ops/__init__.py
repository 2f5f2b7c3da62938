"""What each op means. Pure.

There are NumPy twins, bodies for generated text, and expansions of composite ops.
"""
