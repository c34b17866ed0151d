"""Audit: what is written of a record, the chain that binds it, trails, checking, and the layer."""
