"""The pure core: messages and time in, effects out."""
