"""Imported before the compiled module, which reads the heap under the GIL only."""

from __future__ import annotations

import sys
import sysconfig

if sysconfig.get_config_var("Py_GIL_DISABLED"):
    # Such a build lays out objects differently, even if it runs with the GIL.
    message = (
        "gpumem needs a Python build with the GIL, and this one is free-threaded: "
        f"install the standard build of Python {sys.version_info.major}.{sys.version_info.minor}"
    )
    raise ImportError(message)
