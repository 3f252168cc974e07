# truth: leak
# world: sim
# about: each run adds a click handler to a button, a lambda that holds its preview
# holder: button
# bytes: 16777216
# %%
import ipywidgets as widgets

button = widgets.Button(description="show")

def show(image):
    print(image.nbytes)

# %% x12
preview = sim.tensor(16 << 20)
button.on_click(lambda _, image=preview: show(image))
