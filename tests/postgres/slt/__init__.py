"""Whole statements through the whole server: text in, rows or the error out."""
