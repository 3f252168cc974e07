# truth: leak
# world: sim
# about: a generator remembers every frame that it gave, to drop duplicates
# holder: stream
# bytes: 16777216
# %%
def unique_frames():
    seen = []
    while True:
        frame = sim.tensor(16 << 20)
        if all(frame is not other for other in seen):
            seen.append(frame)
            yield frame

stream = unique_frames()

# %% x12
frame = next(stream)
level = frame.sum().item()
