# truth: leak
# world: host
# about: the bodies of downloads are kept by address, each one new
# holder: pages
# bytes: 16777216
# %%
import os

pages = {}
n = 0


def fetch(url):
    return os.urandom(16 << 20)

# %% x12
n += 1
url = f"https://example.org/{n}"
pages[url] = fetch(url)
