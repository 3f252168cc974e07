# truth: leak
# world: torch
# entry: transformers-trainer-keeps-model
# about: the model is deleted after training, the Trainer keeps it
# %%
import gc

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

torch.set_num_threads(1)
config = BertConfig(
    hidden_size=512, num_hidden_layers=2, num_attention_heads=4, intermediate_size=512, vocab_size=50_000
)
model = BertForSequenceClassification(config)
data = [{"input_ids": [1, 2, 3], "attention_mask": [1, 1, 1], "labels": 0}] * 8

# %%
arguments = TrainingArguments("out", use_cpu=True, max_steps=2, report_to=[], save_strategy="no")
trainer = Trainer(model, arguments, train_dataset=data)
trainer.train();

# %%
del model
# cure
gc.collect();
