"""Tests of `sql`, with tables and transcripts in testdata."""
