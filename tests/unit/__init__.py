"""One package at a time: what its functions promise, as transcripts and small cases.

The folders mirror the packages of the product.
"""
