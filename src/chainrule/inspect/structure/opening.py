"""The script in a drawing: a click opens and closes a block, and all below it moves.

It applies the rule of :mod:`~chainrule.inspect.structure.nested` to the places across that were
found there. Without it the picture stays as it was drawn.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from typing import Any

from chainrule.inspect.structure.nested import PAD, TOP, Arranged

__all__ = ["script"]

SCRIPT = """
(()=>{const svg=document.currentScript.parentNode,D=DATA,PAD=PADDING,TOP=HEADER,HEAD=TITLE,
find=(kind,k)=>svg.querySelector(`[data-${kind}="${k}"]`),f=v=>+v.toFixed(1);
const size=b=>b.o?total(b.g)+TOP+PAD:b.h,wide=b=>b.o?b.f:b.w;
function bands(g){let y=0;return g.r.map((row,i)=>{const h=Math.max(0,...row.map(k=>size(D.b[k]))),
at=[y,y+h];y+=h+(g.s[i]||0);return at})}
function total(g){const all=bands(g);return all.length?all[all.length-1][1]:0}
function curve(raw){const points=raw.map(p=>p.map(f));let d='M'+points[0];
for(let i=1;i<points.length;i++){
const[a,b]=points[i-1],[x,y]=points[i],m=(b+y)/2;
if(a===x&&b===y)continue;d+=a===x?'L'+[x,y].map(f):'C'+[a,m,x,m,x,y].map(f)}return d}
function place(g){const all=bands(g),top={};g.r.forEach((row,i)=>row.forEach(k=>{const b=D.b[k],
h=size(b);top[k]=(all[i][0]+all[i][1]-h)/2;
find('b',k).setAttribute('transform',`translate(${f(b.x)} ${f(top[k])})`);
if(b.g){find('c',k).setAttribute('display',b.o?'none':'inline');
find('o',k).setAttribute('display',b.o?'inline':'none');
if(b.o){find('f',k).setAttribute('height',f(h));place(b.g)}}}));
g.e.forEach(([n,r0,r1,s,t,xs,xt,via])=>{const S=D.b[s],T=D.b[t],x=xs[S&&S.o?1:0],z=xt[T&&T.o?1:0],
p=[[x,all[r0][1]]];if(S)p.unshift([x,top[s]+size(S)]);
via.forEach((v,i)=>p.push([v,all[r0+1+i][0]],[v,all[r0+1+i][1]]));p.push([z,all[r1][0]]);
p.push([z,T?top[t]:all[r1][1]+PAD]);find('e',n).setAttribute('d',curve(p))})}
function draw(){place(D.g);let low=1e9,high=D.t;
D.g.r.flat().forEach(k=>{const b=D.b[k],w=wide(b)/2;
low=Math.min(low,b.x-w);high=Math.max(high,b.x+w)});
D.g.e.forEach(e=>e[7].forEach(x=>{low=Math.min(low,x);high=Math.max(high,x)}));
high=Math.max(high,low+D.t);const box=[low-PAD,-HEAD,high-low+2*PAD,total(D.g)+HEAD+PAD].map(f);
svg.setAttribute('viewBox',box.join(' '));svg.setAttribute('width',box[2]);
svg.setAttribute('height',box[3]);const ground=svg.querySelector('.ground');
['x','y','width','height'].forEach((a,i)=>ground.setAttribute(a,box[i]));
svg.querySelector('.head').setAttribute('transform',`translate(${box[0]} ${box[1]})`)}
function toggle(k){const b=D.b[k];b.o=!b.o;draw();
svg.querySelectorAll(`[data-t="${k}"]`).forEach(t=>t.setAttribute('aria-expanded',b.o))}
svg.querySelectorAll('[data-t]').forEach(t=>{const k=t.dataset.t;t.onclick=e=>{e.stopPropagation();
toggle(k)};t.onkeydown=e=>{if(e.key==='Enter'||e.key===' '){e.preventDefault();toggle(k)}}})})();
"""


def script(a: Arranged, numbers: Mapping[Hashable, int], head: float, title_width: float) -> str:
    """The script for an arranged graph; ``numbers`` are those of the blocks in the picture."""
    blocks: dict[int, Any] = {}
    counter = iter(range(10**9))
    data = {"g": _graph(a, numbers, blocks, counter), "b": blocks, "t": round(title_width, 1)}
    text = json.dumps(data, separators=(",", ":"))
    made = SCRIPT.replace("PADDING", f"{PAD:g}").replace("HEADER", f"{TOP:g}")
    made = made.replace("TITLE", f"{head:g}").replace("DATA", text)
    return f"<script><![CDATA[{made}]]></script>"


def _graph(
    a: Arranged, numbers: Mapping[Hashable, int], blocks: dict[int, Any], counter: Any
) -> dict[str, Any]:
    links = []
    for route in a.routes:
        ends = [numbers.get(end, -1) for end in (route.link.source, route.link.target)]
        shape = [_pair(route.start), _pair(route.stop), route.passes]
        links.append([next(counter), *route.rows, *ends, *shape])
    rows = [[numbers[k] for k in row if k in numbers] for row in a.placed.rows]
    for block in a.graph.blocks:
        told: dict[str, Any] = {
            "x": a.placed.middle[block.key],
            "h": block.closed_height,
            "w": block.closed_width,
        }
        if block.key in a.inner:
            told |= {"f": round(a.frame_width(block), 1), "o": block.open}
            told["g"] = _graph(a.inner[block.key], numbers, blocks, counter)
        blocks[numbers[block.key]] = told
    return {"r": rows, "s": a.placed.gaps, "e": links}


def _pair(ends: tuple[float, float]) -> list[float]:
    return [round(ends[0], 1), round(ends[1], 1)]
