"""Tests of `compute` that need no JVM."""
