"""The files of deploy/: what they promise, and what the tools of their formats say of them."""
