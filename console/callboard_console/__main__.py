"""`python -m callboard_console` is the command `callboard`."""

from __future__ import annotations

from callboard_console.main import run

if __name__ == "__main__":
    run()
