"""Transcripts of the core: messages in, effects out."""
