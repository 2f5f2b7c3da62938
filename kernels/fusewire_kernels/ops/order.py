"""The numbers of the one order in which every reduction combines its elements. Pure.

The prelude `order.h` states the order, and has the same numbers. A chunk is a part of the elements that are reduced to
one result. The results of the chunks are reduced as elements are, so a reduction may also be done in two steps.
"""

CHUNK = 1024  # neighbouring elements of a chunk
LANES = 32  # partial results of a chunk
