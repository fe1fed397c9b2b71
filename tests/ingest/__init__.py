"""Readers of upstreams: one suite of conformance for all, and what each of them promises alone."""
