# truth: leak
# world: torch
# entry: diffusers-adapters
# about: an adapter is added for each style, and none is deleted
# twin: {"before": "# cure", "after": "unet.delete_adapters(name)"}
# %%
import torch
from diffusers import UNet2DConditionModel
from peft import LoraConfig

torch.set_num_threads(1)
unet = UNet2DConditionModel(
    sample_size=8,
    block_out_channels=(32, 64),
    layers_per_block=1,
    down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
    up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
    cross_attention_dim=32,
    attention_head_dim=8,
)
styles = iter(range(100))

# %% x8
name = f"style_{next(styles)}"
unet.add_adapter(LoraConfig(r=4096, target_modules=["to_q"]), name)
# cure
