# truth: leak
# world: host
# entry: tensorflow-retraced-functions
# about: a function is called with Python numbers, and TensorFlow traces it for each
# twin: {"before": "float(step(n))", "after": "float(step(tf.constant(n)))"}
# %%
import tensorflow as tf

n = 0


@tf.function
def step(n):
    x = tf.ones((4, 4))
    for _ in range(200):
        x = tf.sin(x) + tf.cast(n, tf.float32)
    return tf.reduce_sum(x)


# %% x6
for _ in range(3):
    n += 1
    total = float(step(n))
