"""``chainrule serve``: a fitted network behind an address."""

from __future__ import annotations

import argparse
import contextlib
import ipaddress
import sys
from typing import Any

from chainrule.cli.predicting import loaded

__all__ = ["HELP", "add_options", "serve"]

HELP = "answer requests for predictions (JSON over HTTP) until Ctrl-C"


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command; the defaults are those of ``chainrule.serve.Limits``."""
    add = parser.add_argument
    add("model", metavar="MODEL", help="the folder that `fit` wrote")
    add("--host", default="127.0.0.1", help="address to listen at (127.0.0.1: this machine alone)")
    add("--port", type=int, default=8000, help="port to listen at, 0 for a free one (8000)")
    add("--max-rows", type=int, metavar="N", help="rows in one request (1000)")
    add(
        "--max-bytes",
        type=int,
        metavar="N",
        help="bytes in one request (1048576; 16777216 for images)",
    )
    add("--max-pixels", type=int, metavar="N", help="of the images of a request (16777216)")
    add("--max-held", type=int, metavar="N", help="bytes of all requests at work (268435456)")
    add("--max-waiting", type=int, metavar="N", help="rows that wait for their turn (20000)")
    add("--batch-rows", type=int, metavar="N", help="rows that are computed at once (1024)")
    add("--batch-wait", type=float, metavar="S", help="seconds to wait for more rows (0.002)")
    add("--timeout", type=float, metavar="S", help="seconds for a body and for an answer (30)")


def serve(options: argparse.Namespace) -> dict[str, Any]:
    """Serves until it is told to end."""
    from chainrule.serve import limits_for, run

    sizes = ("max_rows", "max_bytes", "max_pixels", "max_held", "max_waiting", "batch_rows")
    names = (*sizes, "batch_wait", "timeout")
    given = {name: getattr(options, name) for name in names}
    network = loaded(options.model)
    limits = limits_for(network, **{n: v for n, v in given.items() if v is not None})
    told: dict[str, Any] = {"model": options.model}

    def started(address: str) -> None:
        told["address"] = address
        where = sys.stderr if options.json else sys.stdout
        print(f"{options.model} is served at {address} (Ctrl-C ends it)", file=where, flush=True)
        if not _is_loopback(options.host):
            print(
                "chainrule serve: other machines can reach it, and it asks for no password",
                file=sys.stderr,
            )

    _allow_connections()
    run(network, options.host, options.port, limits, started=started)
    if not options.json:
        print("ended")
    return told


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _allow_connections() -> None:
    """As many files as the system lets this process open: each connection is one."""
    with contextlib.suppress(ImportError, OSError, ValueError):  # Windows has no such limit
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 65536), most))
