"""Meridian beside PostgreSQL: the same statements, and answers that a real server gave.

Answers are recorded once (`REWRITE=1` where a folder says so) and read in every run.
"""
