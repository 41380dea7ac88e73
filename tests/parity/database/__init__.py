"""The records that PyTorch ships of its operators, modules and optimizers, run on chainrule."""

import importlib

import torch

# On their first import the records would forbid all programs of the process to set
# cudnn.benchmark and its like. PyTorch's own function is seen again once this one is deleted.
torch.backends.disable_global_flags = lambda: None
importlib.import_module("torch.testing._internal.common_utils")
del torch.backends.disable_global_flags
