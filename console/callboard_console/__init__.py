"""The command line of Callboard: `callboard ask`, `model`, `doctor`, `version`."""
