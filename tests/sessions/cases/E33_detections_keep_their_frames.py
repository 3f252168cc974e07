# truth: leak
# world: sim
# about: a detector lists what its generator yields; each detection keeps the frame that it was found in
# holder: detections
# bytes: 16777216
# %%
from dataclasses import dataclass
from time import sleep

from gpumem import sim

sim.use(8 << 30)


@dataclass
class Detection:
    frame: object
    box: tuple


class Detector:
    def stream(self, frames):
        for frame in frames:
            sleep(0.02)
            yield Detection(frame, (0, 0, 8, 8))

    def __call__(self, frames):
        return list(self.stream(frames))


def video(n_frames):
    for _ in range(n_frames):
        yield sim.tensor(16 << 20)


detect = Detector()
# %%
detections = detect(video(30))
