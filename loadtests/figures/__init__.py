"""The scenarios, one file each; `catalogue` lists them."""
