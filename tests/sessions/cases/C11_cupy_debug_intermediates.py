# truth: leak
# world: sim
# about: a pipeline object as with CuPy keeps its intermediate arrays, because debug is left on
# holder: pipeline
# bytes: 50331648
# %%
from gpumem import sim as xp

xp.use(4 << 30)


class Pipeline:
    def __init__(self, debug=False):
        self.debug = debug
        self.intermediate = []

    def __call__(self, frame):
        for stage in (self.blur, self.threshold):
            frame = stage(frame)
            if self.debug:
                self.intermediate.append((stage.__name__, frame))
        return frame.sum().item()

    def blur(self, frame):
        return frame * 0.5

    def threshold(self, frame):
        return frame + 1


pipeline = Pipeline(debug=True)

# %% x12
frame = xp.tensor(24 << 20)
area = pipeline(frame)
