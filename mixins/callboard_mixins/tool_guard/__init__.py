"""Decides which calls may run: rules, detectors, and the layer that asks."""
