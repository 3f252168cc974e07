# truth: leak
# world: sim
# about: a loop that is over in a blink keeps the errors of samples that are broken, and with them what they had made
# holder: failures
# bytes: 8388608
# %%
failures = {}

def read(sample):
    data = sim.tensor(8 << 20)
    if sample % 3 == 0:
        raise ValueError(f"sample {sample} of {data.nbytes} bytes")
    return 1

# %%
for sample in range(90):
    try:
        read(sample)
    except ValueError as error:
        failures[sample] = error
