"""SummaryWriter: what a training program tells TensorBoard."""

from __future__ import annotations

import datetime
import os
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from chainrule.absent import refused
from chainrule.nn import Module
from chainrule.ops.creation.from_data import as_tensor
from chainrule.ops.shape.stacking import stack
from chainrule.utils.tensorboard import messages as m
from chainrule.utils.tensorboard import contents, pictures
from chainrule.utils.tensorboard.embeddings import write_embedding
from chainrule.utils.tensorboard.graphs import graph_of
from chainrule.utils.tensorboard.records import EventFile
from chainrule.utils.tensorboard.contents import Value

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SummaryWriter"]

MOST_THRESHOLDS = 127


class SummaryWriter:
    """Writes numbers, distributions, images, texts, ... of a run into a folder, for TensorBoard.

    ``tensorboard --logdir runs`` shows them. Every method takes a name (``tag``), a value, and the
    step it belongs to; ``walltime`` is the time in seconds, now by default.

    Args:
        log_dir: the folder; by default ``runs/`` and the date, the time and this machine's name.
        comment: what to put behind that.
        purge_step: hides what an earlier run wrote to the folder for this step and later ones.
        max_queue: how many events wait in memory at most.
        flush_secs: how many seconds they wait at most.
        filename_suffix: what to put behind the names of the files.

    >>> import tempfile
    >>> with SummaryWriter(tempfile.mkdtemp()) as writer:
    ...     for step in range(3):
    ...         writer.add_scalar("loss", 1 / (step + 1), step)
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str] | None = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
    ):
        if not log_dir:
            now = datetime.datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = Path("runs") / f"{now}_{socket.gethostname()}{comment}"
        self.log_dir = str(log_dir)
        self.purge_step = purge_step
        self.max_queue = max_queue
        self.flush_secs = flush_secs
        self.filename_suffix = filename_suffix
        self.default_bins = contents.default_bins()
        self._files: dict[str, EventFile] = {}
        self._embeddings = ""
        self._file(self.log_dir)

    # --- files ------------------------------------------------------------------------------------

    def _file(self, folder: str) -> EventFile:
        """The file in a folder, made anew if it was closed."""
        if folder not in self._files:
            file = EventFile(folder, self.max_queue, self.flush_secs, self.filename_suffix)
            self._files[folder] = file
            if self.purge_step is not None:
                start = m.inside(7, m.integer(1, 1))
                file.add(m.event(time.time(), self.purge_step, start))
                self.purge_step = None
        return self._files[folder]

    def _add(
        self, content: bytes, step: Any, walltime: float | None, folder: str | None = None
    ) -> None:
        now = time.time() if walltime is None else walltime
        number = None if step is None else int(step)
        self._file(folder or self.log_dir).add(m.event(now, number, content))

    def get_logdir(self) -> str:
        """The folder."""
        return self.log_dir

    def flush(self) -> None:
        """Hands all that was added to the system."""
        for file in self._files.values():
            file.flush()

    def close(self) -> None:
        """Ends the files; what is added after that goes into a new one."""
        for file in self._files.values():
            file.close()
        self._files = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # --- numbers ----------------------------------------------------------------------------------

    def add_scalar(
        self,
        tag: str,
        scalar_value: Value,
        global_step: int | None = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """Adds a number: a point of the curve ``tag``."""
        content = contents.scalar(tag, scalar_value, new_style, double_precision)
        self._add(content, global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, Value],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Adds points of several curves in one chart, each in a folder of its own."""
        now = time.time() if walltime is None else walltime
        for tag, value in tag_scalar_dict.items():
            folder = f"{self.log_dir}/{main_tag.replace('/', '_')}_{tag}"
            self._add(contents.scalar(main_tag, value), global_step, now, folder)

    def add_tensor(
        self,
        tag: str,
        tensor: Value,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Adds a tensor with all its numbers."""
        content = m.inside(8, m.tensor(as_tensor(tensor)))
        self._add(m.summary(tag, content, m.plugin("tensor")), global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: Value,
        global_step: int | None = None,
        bins: str | int | Sequence[float] = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """Adds the distribution of values; ``bins`` are borders, or how NumPy should find them."""
        borders = self.default_bins if bins == "tensorflow" else bins
        content = contents.histogram(values, borders, max_bins)
        self._add(m.summary(tag, content), global_step, walltime)

    def add_histogram_raw(
        self,
        tag: str,
        min: float,
        max: float,
        num: float,
        sum: float,
        sum_squares: float,
        bucket_limits: Sequence[float],
        bucket_counts: Sequence[float],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Adds a distribution that was counted before."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError(
                "add_histogram_raw: len(bucket_limits) != len(bucket_counts): "
                f"{len(bucket_limits)} and {len(bucket_counts)}"
            )
        content = contents.histogram_message(
            min, max, num, sum, sum_squares, bucket_limits, bucket_counts
        )
        self._add(m.summary(tag, content), global_step, walltime)

    def add_pr_curve(
        self,
        tag: str,
        labels: Value,
        predictions: Value,
        global_step: int | None = None,
        num_thresholds: int = MOST_THRESHOLDS,
        weights: Value | None = None,
        walltime: float | None = None,
    ) -> None:
        """Adds precision and recall of predictions in [0, 1], by threshold."""
        thresholds = min(num_thresholds, MOST_THRESHOLDS)
        counts = contents.curve_counts(labels, predictions, thresholds, weights)
        self._add(contents.curve(tag, counts, thresholds), global_step, walltime)

    def add_pr_curve_raw(
        self,
        tag: str,
        true_positive_counts: Value,
        false_positive_counts: Value,
        true_negative_counts: Value,
        false_negative_counts: Value,
        precision: Value,
        recall: Value,
        global_step: int | None = None,
        num_thresholds: int = MOST_THRESHOLDS,
        weights: Value | None = None,
        walltime: float | None = None,
    ) -> None:
        """Adds a curve of precision and recall that was counted before."""
        counted = (true_positive_counts, false_positive_counts, true_negative_counts)
        rows = (*counted, false_negative_counts, precision, recall)
        counts = stack([as_tensor(row).detach().double() for row in rows])
        thresholds = min(num_thresholds, MOST_THRESHOLDS)
        self._add(contents.curve(tag, counts, thresholds), global_step, walltime)

    # --- pictures, sounds, texts ------------------------------------------------------------------

    def add_image(
        self,
        tag: str,
        img_tensor: Value,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """Adds an image, of bytes or floating in [0, 1]."""
        content = pictures.message(pictures.one_picture(img_tensor, dataformats))
        self._add(m.summary(tag, content), global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: Value,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Adds images, in a grid with rows of eight."""
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_image_with_boxes(
        self,
        tag: str,
        img_tensor: Value,
        box_tensor: Value,
        global_step: int | None = None,
        walltime: float | None = None,
        rescale: float = 1,
        dataformats: str = "CHW",
        labels: Sequence[str] | None = None,
    ) -> None:
        """Adds an image with red boxes (xmin, ymin, xmax, ymax), without texts beside them."""
        if labels is not None or rescale != 1:
            raise ValueError(
                "add_image_with_boxes: labels and rescale are not there; draw them with matplotlib "
                "and use add_figure"
            )
        pixels = pictures.boxed(pictures.one_picture(img_tensor, dataformats), box_tensor)
        self._add(m.summary(tag, pictures.message(pixels)), global_step, walltime)

    def add_figure(
        self,
        tag: str,
        figure: Figure | list[Figure],
        global_step: int | None = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """Adds a figure of matplotlib's, or several side by side."""
        pixels = pictures.figure_pixels(figure, close)
        form = "NHWC" if isinstance(figure, list) else "HWC"
        self.add_image(tag, pixels, global_step, walltime, form)

    def add_audio(
        self,
        tag: str,
        snd_tensor: Value,
        global_step: int | None = None,
        sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:
        """Adds a sound with values in [-1, 1]."""
        content = contents.audio(snd_tensor, sample_rate)
        self._add(m.summary(tag, content), global_step, walltime)

    def add_text(
        self,
        tag: str,
        text_string: str,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Adds a text, in Markdown."""
        content = m.inside(8, m.strings([text_string.encode()], [1]))
        summary = m.summary(f"{tag}/text_summary", content, m.plugin("text"))
        self._add(summary, global_step, walltime)

    # --- of the whole run -------------------------------------------------------------------------

    def add_graph(
        self,
        model: Module,
        input_to_model: Any = None,
        verbose: bool = False,
        use_strict_trace: bool = True,
    ) -> None:
        """Adds the graph of ``model(*input_to_model)``: its operations, in their modules."""
        self._add(graph_of(model, input_to_model), None, None)

    def add_embedding(
        self,
        mat: Value,
        metadata: Sequence[Any] | None = None,
        label_img: Value | None = None,
        global_step: int | None = None,
        tag: str = "default",
        metadata_header: Sequence[str] | None = None,
    ) -> None:
        """Adds points (N, D) with labels and images, for the projector."""
        folder, step = Path(self.log_dir), global_step or 0
        told = write_embedding(folder, mat, metadata, label_img, step, tag, metadata_header)
        self._embeddings += told
        (folder / "projector_config.pbtxt").write_text(self._embeddings, "utf-8")

    def add_hparams(
        self,
        hparam_dict: Mapping[str, Any],
        metric_dict: Mapping[str, Value],
        hparam_domain_discrete: Mapping[str, Sequence[Any]] | None = None,
        run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:
        """Adds settings of a run and what came of them, in a folder of their own."""
        if not isinstance(hparam_dict, dict) or not isinstance(metric_dict, dict):
            raise TypeError("add_hparams: hparam_dict and metric_dict should be dictionary.")
        told = contents.hyperparameters(hparam_dict, metric_dict, hparam_domain_discrete)
        folder = f"{self.log_dir}/{run_name or time.time()}"
        for summary in told:
            self._add(summary, global_step, None, folder)
        for tag, value in metric_dict.items():
            self._add(contents.scalar(tag, value), global_step, None, folder)
        self._files.pop(folder).close()

    def add_custom_scalars(self, layout: Mapping[str, Mapping[str, Sequence[Any]]]) -> None:
        """Says which curves belong together: ``{category: {title: ["Multiline", tags]}}``."""
        self._add(contents.custom_scalars(layout), None, None)

    def add_custom_scalars_multilinechart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Shows several curves in one chart."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Shows a curve between two others: value, lower, upper."""
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    add_video = refused(
        "add_video", "no films are written; add_images shows the frames side by side"
    )
    add_mesh = refused("add_mesh", "no meshes are written; add_embedding shows points in space")
    add_onnx_graph = refused("add_onnx_graph", "no ONNX is read; add_graph shows a model")
