# truth: leak
# world: torch
# about: a trainer writes a dataclass for each step into its history, with the logits of the whole batch in it
# holder: trainer
# bytes: 4194304

# %%
import time
from dataclasses import dataclass
import torch
from torch import nn
torch.set_num_threads(1)
torch.manual_seed(0)


@dataclass
class StepRecord:
    step: int
    loss: float
    logits: torch.Tensor
    lr: float = 0.1


# %%
class Trainer:
    def __init__(self, vocabulary=4096, width=128, lr=0.1):
        self.vocabulary = vocabulary
        self.lr = lr
        self.model = nn.Sequential(nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary))
        self.opt = torch.optim.SGD(self.model.parameters(), lr=lr)
        self.history = []

    def batch(self):
        tokens = torch.randint(0, self.vocabulary, (256,))
        return tokens, (tokens + 1) % self.vocabulary

    def fit(self, steps):
        for step in range(steps):
            tokens, following = self.batch()
            logits = self.model(tokens)
            loss = nn.functional.cross_entropy(logits, following)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.history.append(StepRecord(step, loss.item(), logits.detach(), self.lr))
            time.sleep(0.02)
        return self.history[-1].loss


trainer = Trainer()

# %% x1
print("last loss", trainer.fit(48))
