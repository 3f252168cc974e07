# truth: leak
# world: host
# entry: anywidget-file-contents
# about: a widget whose script is a file is made anew with each run; closed or not, it stays
# twin: {"before": "_esm = pathlib.Path(\"widget.js\")", "after": "_esm = pathlib.Path(\"widget.js\").read_text()"}
# %%
import gc
import pathlib

import anywidget
import numpy as np
import traitlets

pathlib.Path("widget.js").write_text("export default { render() {} }")


class Plot(anywidget.AnyWidget):
    _esm = pathlib.Path("widget.js")
    points = traitlets.Any()

# %% x12
plot = Plot(points=np.random.rand(1 << 20))
plot.close()
gc.collect();
