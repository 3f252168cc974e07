"""``jupyter gpumem`` and ``python -m gpumem``: sessions and recordings from a terminal."""

from __future__ import annotations

import sys

from gpumem._command_line import main

if __name__ == "__main__":
    sys.exit(main())
