"""The sampler for several processes, where PyTorch has it."""

from chainrule.data.sampler import DistributedSampler

__all__ = ["DistributedSampler"]
