"""A plan as data, and how slot tables are filled. Pure."""
