# truth: leak
# world: host
# entry: trimesh-cache
# about: meshes are kept, and each keeps what was ever computed of it
# twin: {"before": "meshes.append(mesh)", "after": "meshes.append(smoothness); mesh._cache.clear()"}
# %%
import trimesh

meshes = []

# %% x12
mesh = trimesh.creation.icosphere(subdivisions=5)
smoothness = mesh.face_adjacency_angles.mean() + mesh.vertex_normals.mean() + mesh.area
meshes.append(mesh)
