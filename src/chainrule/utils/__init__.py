"""PyTorch's ``torch.utils``: data, checkpoints in the backward pass, records of a run."""

from typing import Any

from chainrule.absent import absent
from chainrule.utils import checkpoint, data, dlpack, hooks, tensorboard

__all__ = ["checkpoint", "data", "dlpack", "hooks", "tensorboard"]

ABSENT = {
    "ThroughputBenchmark": "time.perf_counter() measures; chainrule's own numbers: make bench",
    "benchmark": "Python's timeit measures: nothing runs behind a function that has returned",
    "bottleneck": "Python's cProfile finds what takes time",
    "collect_env": "chainrule.__config__.show(), or `chainrule info`, says what is installed",
    "file_baton": "chainrule compiles nothing while a program runs; nothing has to wait for it",
    "cpp_extension": (
        "chainrule loads no C++ of the user's; write an autograd.Function in Python, over NumPy or "
        "a library called with ctypes"
    ),
    "flop_counter": "inspect.count(model, inputs) counts what a forward pass computes",
    "mobile_optimizer": "chainrule has no models for telephones",
    "module_tracker": "inspect.summary(model, inputs) tells which modules a forward pass calls",
    "model_zoo": "weights for PyTorch come as pickles; chainrule.load reads safetensors",
    **dict.fromkeys(
        (
            "backcompat",
            "backend_registration",
            "cmake_prefix_path",
            "copyreg",
            "cpp_backtrace",
            "deterministic",
            "generate_methods_for_privateuse1_backend",
            "get_cpp_backtrace",
            "rename_privateuse1_backend",
            "serialization",
            "set_module",
            "swap_tensors",
            "throughput_benchmark",
            "weak",
        ),
        "it belongs to the inside of PyTorch",
    ),
}


def __getattr__(name: str) -> Any:
    raise absent(__name__, name, ABSENT)
