"""Engines: where actors that outlive their process keep letters, journals and answers."""
