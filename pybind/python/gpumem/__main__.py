"""``python -m gpumem`` is ``jupyter gpumem``."""

import sys

from gpumem.cli import main

if __name__ == "__main__":
    sys.exit(main(name="python -m gpumem"))
