"""A plan as data: launches, columns, kernels, and how slot tables are filled. Pure."""
