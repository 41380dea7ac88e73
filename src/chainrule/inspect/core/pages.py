"""Pages and pictures that move: one HTML file that steps through frames, or one GIF."""

from __future__ import annotations

import base64
import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chainrule.charts import save_gif, svg_of_frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Frames", "page", "steps_page"]

# Colors of a page follow the reader's choice of light or dark; pictures keep their white ground.
STYLE = """
:root{color-scheme:light dark;--ground:#fff;--ink:#1a1a1a;--soft:#666;--line:#ddd;--mark:#0072B2;
--other:#B34700}
@media (prefers-color-scheme:dark){:root{--ground:#16181c;--ink:#e8e8e8;--soft:#9aa0a6;
--line:#333840;--mark:#56B4E9;--other:#E69F00}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:60rem;padding:1rem;background:var(--ground);color:var(--ink);
font:16px/1.5 system-ui,sans-serif}
h1{font-size:1.35rem;margin:.2rem 0 .6rem}h2{font-size:1.1rem}
pre,table{overflow-x:auto;display:block;max-width:100%}
pre{font:13px/1.4 ui-monospace,monospace}
td,th{padding:.15rem .6rem;text-align:left;border-bottom:1px solid var(--line)}
svg,img{max-width:100%;height:auto}
.frame{background:#fff;border-radius:6px;overflow-x:auto}
@media (max-width:600px){.wide svg{max-width:none;width:44rem}}
.soft{color:var(--soft)}
nav{display:flex;gap:.5rem;align-items:center;margin:.6rem 0;flex-wrap:wrap}
nav input{flex:1;min-width:8rem;accent-color:var(--mark)}
button{font:inherit;padding:.25rem .8rem;border:1px solid var(--line);border-radius:6px;
background:transparent;color:inherit;cursor:pointer}
button:focus-visible,input:focus-visible{outline:2px solid var(--mark)}
"""
# Without a script all frames stand below each other; with it one at a time.
SCRIPT = """
const frames=[...document.querySelectorAll('.step')],slider=document.querySelector('nav input'),
place=document.querySelector('#place'),play=document.querySelector('#play');let at=0,timer=null;
function show(i){at=Math.max(0,Math.min(frames.length-1,i));
frames.forEach((f,k)=>f.hidden=k!==at);slider.value=at;place.textContent=(at+1)+' / '+frames.length}
function stop(){clearInterval(timer);timer=null;play.textContent='Play'}
function toggle(){if(timer){stop();return}if(at===frames.length-1)show(0);play.textContent='Stop';
timer=setInterval(()=>{if(at===frames.length-1)stop();else show(at+1)},PAUSE)}
document.querySelector('#back').onclick=()=>{stop();show(at-1)};
document.querySelector('#next').onclick=()=>{stop();show(at+1)};play.onclick=toggle;
slider.oninput=()=>{stop();show(+slider.value)};
document.addEventListener('keydown',e=>{const step={ArrowLeft:-1,ArrowRight:1,j:1,k:-1}[e.key];
if(e.target===slider&&e.key.startsWith('Arrow'))return;
if(step){stop();show(at+step);e.preventDefault()}
else if(e.key==='Home'){stop();show(0)}else if(e.key==='End'){stop();show(frames.length-1)}
else if(e.key===' '&&e.target.tagName!=='BUTTON'){toggle();e.preventDefault()}});
document.querySelector('nav').hidden=false;show(0);
"""


OUTLINE = re.compile(r'<path d="([^"]{200,})"')
LETTER = re.compile(r'<path id="(DejaVu[^"]*)" d="[^"]*"[^>]*/>')


def page(title: str, body: str, style: str = "") -> str:
    """A page that stands alone: one file, no request to anywhere, readable on a phone.

    ``style`` is CSS beside that of all pages.
    """
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}{style}</style></head>"
        f"<body><h1>{escape(title)}</h1>{body}</body></html>\n"
    )


def steps_page(
    title: str, frames: Sequence[str], intro: str = "", seconds_per_frame: float = 0.7
) -> str:
    """A page that shows one frame at a time: by the arrow keys, a slider, or as a film.

    ``frames`` are pieces of HTML or SVG, ``intro`` is one that stands above them all.
    """
    if not frames:
        raise ValueError(f"steps_page: {title!r} has no frames")
    steps = "".join(f'<section class="step">{frame}</section>' for frame in frames)
    controls = (
        '<nav hidden aria-label="Steps"><button id="back">Back</button>'
        '<button id="next">Next</button><button id="play">Play</button>'
        f'<input type="range" min="0" max="{len(frames) - 1}" value="0" aria-label="Step">'
        '<span id="place" class="soft"></span></nav>'
    )
    script = SCRIPT.replace("PAUSE", str(round(1000 * seconds_per_frame)))
    return page(title, f"{intro}{controls}{steps}<script>{script}</script>")


def _once(frames: list[str]) -> tuple[str, list[str]]:
    """Letters, and long outlines that several frames have (the map below a path), written once;
    and the frames that refer to them."""
    letters: dict[str, str] = {}

    def taken(match: re.Match[str]) -> str:
        letters.setdefault(match[1], match[0])
        return ""

    frames = [LETTER.sub(taken, frame) for frame in frames]
    found = Counter(shape for frame in frames for shape in set(OUTLINE.findall(frame)))
    shared = {shape: f"once{i}" for i, (shape, n) in enumerate(found.items()) if n > 1}

    def referred(match: re.Match[str]) -> str:
        name = shared.get(match[1])
        return match[0] if name is None else f'<use href="#{name}"'

    shapes = "".join(letters.values())
    shapes += "".join(f'<path id="{name}" d="{shape}"/>' for shape, name in shared.items())
    drawing = f'<svg width="0" height="0" style="position:absolute"><defs>{shapes}</defs></svg>'
    return drawing, [OUTLINE.sub(referred, frame) for frame in frames]


class Frames:
    """A film: a figure that is drawn again for every frame.

    Args:
        title: what it shows.
        count: the number of frames.
        draw: ``draw(figure, i)`` draws frame i into an empty matplotlib figure.
        size: of the figure in inches.
    """

    def __init__(
        self,
        title: str,
        count: int,
        draw: Callable[[Figure, int], Any],
        size: tuple[float, float] = (6.4, 4.0),
    ):
        if count < 1:
            raise ValueError(f"Frames: {title!r} needs at least one frame, got {count}")
        self.title, self.count, self.draw, self.size = title, count, draw, size

    def save(self, path: str | os.PathLike[str], seconds_per_frame: float = 0.2) -> Path:
        """Writes the film as ``*.html`` (one file with a slider) or ``*.gif``."""
        target = Path(path)
        if target.suffix == ".gif":
            save_gif(target, self.draw, self.count, self.size, seconds_per_frame)
        elif target.suffix in (".html", ".htm"):
            target.write_text(self.to_html(seconds_per_frame), "utf-8")
        else:
            raise ValueError(f"save: a film is written as .html or .gif, got {target.name!r}")
        return target

    def to_html(self, seconds_per_frame: float = 0.2) -> str:
        """The film as a page."""
        drawn = [svg_of_frame(self.draw, i, self.size) for i in range(self.count)]
        once, drawn = _once(drawn)
        # On a phone a wide figure is moved sideways, so that its text can be read.
        kind = "frame wide" if self.size[0] > 7 else "frame"
        frames = [f'<div class="{kind}">{frame}</div>' for frame in drawn]
        return steps_page(self.title, frames, once, seconds_per_frame)

    def _repr_html_(self) -> str:
        inner = base64.b64encode(self.to_html().encode()).decode()
        height = int(self.size[1] * 100) + 130
        return (
            f'<iframe src="data:text/html;base64,{inner}" width="100%" height="{height}" '
            f'style="border:0" title="{escape(self.title)}"></iframe>'
        )
