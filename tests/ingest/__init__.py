"""Readers of upstreams: what each of them promises alone, and sources that are fed by them."""
