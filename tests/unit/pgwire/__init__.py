"""Tests of `coordinator.pgwire`, with transcripts and recorded bytes in testdata."""
