"""Redaction: patterns, what stands in the place of what they find, vaults, and the layer."""
