"""Runs the tests of other projects against a server; none of their files are kept here."""
