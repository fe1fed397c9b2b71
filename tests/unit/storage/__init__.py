"""Tests of `storage`, with transcripts in testdata."""
