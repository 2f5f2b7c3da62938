"""Uploads and downloads."""
