"""Tests of the Spark engine, all on one JVM."""
