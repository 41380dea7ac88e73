"""The records that PyTorch ships of its operators, modules and optimizers, run on chainrule."""

import torch

# The records would forbid all programs of the process to set cudnn.benchmark and its like.
torch.backends.disable_global_flags = lambda: None
