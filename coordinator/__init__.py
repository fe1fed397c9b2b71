"""Sessions, timestamps, transactions and the order of everything."""
