"""Settings with one value, and modules that say what is there."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

import chainrule as torch
from chainrule import accelerator, distributed, hub, nn, settings
from chainrule.backend import precision


@pytest.fixture(autouse=True)
def _settings_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "_set", dict(settings._set))
    monkeypatch.setattr(precision, "_levels", list(precision._levels))


def test_precision_of_products() -> None:
    assert torch.get_float32_matmul_precision() == "highest"
    torch.set_float32_matmul_precision("high")
    assert torch.get_float32_matmul_precision() == "high"
    with pytest.raises(ValueError, match="expected one of .*got 'low'"):
        torch.set_float32_matmul_precision("low")


def test_the_place_of_tensors() -> None:
    torch.set_default_device("cpu")
    torch.set_default_device(torch.device("cpu"))
    torch.set_default_device(None)
    assert torch.get_default_device() == torch.device("cpu")
    with pytest.raises(RuntimeError, match="'cuda' is not available; tensors live on 'cpu'"):
        torch.set_default_device("cuda")


def test_a_device_as_a_block_and_beside_others() -> None:
    with torch.device("cpu") as place:
        assert torch.ones(1).device == place
    assert torch.device("cpu") != "cuda:0"
    assert torch.device("cpu") != "gpu?"
    assert torch.device("cpu") != 3


def test_threads_of_operations() -> None:
    assert torch.get_num_interop_threads() == 1
    torch.set_num_interop_threads(4)
    assert torch.get_num_interop_threads() == 4
    with pytest.raises(RuntimeError, match="positive integer, got 0"):
        torch.set_num_interop_threads(0)


def test_repeatability() -> None:
    torch.use_deterministic_algorithms(False, warn_only=True)
    torch.set_deterministic_debug_mode("warn")
    assert torch.get_deterministic_debug_mode() == 1
    torch.set_deterministic_debug_mode(0)
    assert torch.get_deterministic_debug_mode() == 0
    assert not torch.is_deterministic_algorithms_warn_only_enabled()
    with pytest.raises(RuntimeError, match="expected one of .* got 'loud'"):
        torch.set_deterministic_debug_mode("loud")
    with pytest.raises(RuntimeError, match="got 3"):
        torch.set_deterministic_debug_mode(3)


def test_small_questions() -> None:
    assert torch.set_flush_denormal(True) is False
    torch.set_warn_always(True)
    assert torch.is_warn_always_enabled()
    assert not torch.is_storage(torch.ones(2))
    assert torch.is_storage(torch.ones(2).storage())


def test_versions() -> None:
    assert torch.version.__version__ == torch.__version__
    assert torch.version.cuda is torch.version.hip is torch.version.xpu is None
    assert torch.__config__.show().startswith("chainrule ")
    assert torch.backend.current() in torch.__config__.show()
    assert str(torch.get_num_threads()) in torch.__config__.parallel_info()


# --- accelerators and processes -------------------------------------------------------------------


def test_no_accelerator() -> None:
    assert not accelerator.is_available()
    assert accelerator.device_count() == 0
    assert accelerator.current_accelerator() is None
    accelerator.synchronize()
    accelerator.empty_cache()
    with accelerator.device_index(None):
        pass
    with (
        pytest.raises(RuntimeError, match="set_device_index: there is no accelerator"),
        accelerator.device_index(0),
    ):
        pass


def test_one_process() -> None:
    assert distributed.is_available() is (find_spec("jax") is not None)
    assert not distributed.is_initialized()
    assert (distributed.get_rank(), distributed.get_world_size()) == (0, 1)
    asked: list[Callable[[], bool]] = [
        distributed.is_mpi_available,
        distributed.is_nccl_available,
        distributed.is_torchelastic_launched,
        distributed.is_ucc_available,
        distributed.is_xccl_available,
    ]
    assert not any(ask() for ask in asked)
    assert distributed.is_backend_available("gloo") is distributed.is_gloo_available()
    assert not distributed.is_backend_available("mpi")
    assert distributed.ReduceOp.SUM is distributed.reduce_op.SUM
    assert distributed.Backend.NCCL == "nccl"


@pytest.mark.skipif(bool(find_spec("jax")), reason="JAX is there")
def test_modules_on_several_devices_need_jax() -> None:
    with pytest.raises(ImportError, match=r"need JAX: pip install 'chainrule\[xla\]'"):
        nn.parallel.DistributedDataParallel(nn.Linear(1, 1))


def test_a_module_on_one_device() -> None:
    layer = nn.Linear(2, 1)
    x = torch.ones(3, 2)
    wrapped = nn.DataParallel(layer, device_ids=[0, 1], output_device=0)
    assert wrapped.module is layer
    assert torch.equal(wrapped(x), layer(x))
    assert torch.equal(nn.parallel.data_parallel(layer, x), layer(x))
    assert torch.equal(nn.parallel.data_parallel(layer, (x,), module_kwargs={}), layer(x))
    assert not isinstance(layer, nn.parallel.DistributedDataParallel)
    layer.load_state_dict({k.removeprefix("module."): v for k, v in wrapped.state_dict().items()})


# --- files from elsewhere -------------------------------------------------------------------------


def test_the_folder_of_downloads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(hub, "_folder", None)
    monkeypatch.setenv("CHAINRULE_DATA", str(tmp_path))
    assert hub.get_dir() == str(tmp_path / "hub")
    hub.set_dir(tmp_path / "other")
    assert hub.get_dir() == str(tmp_path / "other")


def test_a_download_checks_whole_hashes(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="whole SHA-256 of 64 digits here, got 8"):
        hub.download_url_to_file("http://localhost/x", str(tmp_path / "x"), hash_prefix="0" * 8)


def test_lists_of_what_pickles_may_make() -> None:
    serialization = torch.serialization
    serialization.add_safe_globals([dict])
    assert serialization.get_safe_globals() == []
    serialization.clear_safe_globals()
    with serialization.safe_globals([dict]):
        pass
    assert serialization.load is torch.load
    assert serialization.save is torch.save
