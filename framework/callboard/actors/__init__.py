"""Actors: addresses, and later mailboxes, the bus and the system."""
