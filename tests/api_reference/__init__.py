"""The pages of docs/api, made from the docstrings of the public namespace and from examples that are run."""
