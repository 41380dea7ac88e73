"""Chromium without a window: opens a page, and gives back what became of it."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

__all__ = ["find", "screenshot", "wrong_with"]

WIDTHS = (390, 1280)
NAMES = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# Into the head of the page: requests are refused and told, and so is what goes to the console. A
# page of several files may read those beside it.
EARS = """<meta http-equiv="Content-Security-Policy" content="default-src 'none';img-src data:FILES;
style-src 'unsafe-inline'; script-src 'unsafe-inline'"><script>window.heard=[];
addEventListener('error',e=>heard.push('error: '+(e.message||'a file is missing')),true);
addEventListener('unhandledrejection',e=>heard.push('error: '+e.reason));
addEventListener('securitypolicyviolation',e=>heard.push('asks for '+(e.blockedURI||'a file')));
for(const kind of ['error','warn'])console[kind]=(...said)=>heard.push('console: '+said.join(' '));
</script>"""


def find() -> str:
    """The browser: of CHAINRULE_BROWSER, or the first that is installed."""
    given = os.environ.get("CHAINRULE_BROWSER")
    found = shutil.which(given) if given else next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        raise SystemExit(
            f"browser: {given or 'Chromium'} is not installed; get it with "
            "`apt-get install chromium`, or name another by CHAINRULE_BROWSER=/path/to/chrome"
        )
    return found


def _run(address: str, dark: bool, *options: str) -> str:
    # 0 is dark, 1 is light.
    scheme = f"--blink-settings=preferredColorScheme={int(not dark)}"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [find(), *OPTIONS, f"--user-data-dir={profile}", scheme, *options, address]
        return subprocess.run(command, capture_output=True, text=True, timeout=120).stdout


def wrong_with(page: str, controls: str, dark: bool, beside: Path | None = None) -> list[str]:
    """What is wrong with a page, in sentences; nothing, if all is well.

    ``controls`` is what must work by keys: "curves", "slider", "steps", "modules", "filters",
    "entry" for a page of the atlas, or "" for nothing; with "drawings" the words of SVG in it are
    looked at. ``beside`` is the folder of the page, if it shows files of its own.
    """
    ears = EARS.replace("FILES", "" if beside is None else " file:; frame-src file:")
    heard = page.replace("<head>", f"<head>{ears}", 1)
    if heard == page:
        return ["has no <head>"]
    scheme = "dark" if dark else "light"
    frames = "".join(
        f'<iframe style="width:{width}px;height:900px;border:0;color-scheme:{scheme}" '
        f'srcdoc="{html.escape(heard)}"></iframe>'
        for width in WIDTHS
    )
    script = Path(__file__).with_name("check.js").read_text("utf-8")
    call = f"addEventListener('load',()=>checkAll({json.dumps(dark)},{json.dumps(controls)}))"
    with tempfile.TemporaryDirectory(dir=beside) as folder:
        outer = Path(beside or folder, "outer.html")
        outer.write_text(
            f'<!doctype html><html style="color-scheme:{scheme}"><meta charset="utf-8">'
            f"<body>{frames}<script>{script}{call}</script></body></html>",
            "utf-8",
        )
        found = _run(outer.as_uri(), dark, "--dump-dom", "--virtual-time-budget=5000")
    result = re.search(r'<pre id="result">(.*?)</pre>', found, re.S)
    if result is None:
        return ["the browser gave no result"]
    said: list[str] = json.loads(html.unescape(result[1]))
    return said


def screenshot(page: Path, target: Path, width: int, dark: bool, height: int = 1400) -> None:
    """Takes a picture of a page, for people to look at."""
    _run(page.as_uri(), dark, f"--window-size={width},{height}", f"--screenshot={target}")
