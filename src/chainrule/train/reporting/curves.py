"""The curves of learning: a picture, and with a script one that zooms and changes its axis."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from html import escape

from chainrule.charts import spans_decades
from chainrule.inspect.core import svg
from chainrule.train.fitted import FittedNetwork
from chainrule.train.reporting.verdict import measure

__all__ = ["SCRIPT", "learning"]

# The same chart as svg.curve_chart draws, of the epochs that are chosen.
SCRIPT = """
document.querySelectorAll('figure.curves').forEach(figure=>{
const data=JSON.parse(figure.querySelector('script').textContent),svg=figure.querySelector('svg'),
plot=svg.querySelector('.plot'),out=document.createElement('output'),[W,H,L,R,T,B]=data.frame,
longest=Math.max(2,...data.series.map(s=>s.values.length));
let log=data.log,low=1,high=longest,at=null;
const positive=data.series.every(s=>s.values.every(v=>v===null||v>0)),
label=v=>{const a=Math.abs(v),
[size,letter]=a>=1e9?[1e9,'G']:a>=1e6?[1e6,'M']:a>=1e4?[1e3,'k']:[1,''];
return a<1e12?+(v/size).toPrecision(4)+letter:v.toPrecision(4)};
function ticks(a,b,whole){const rough=(b-a)/5,p=10**Math.floor(Math.log10(rough)),
near=[1,2,2.5,5,10].map(m=>m*p).find(s=>s>=rough),step=whole?Math.max(1,Math.ceil(near)):near,
found=[];for(let i=Math.ceil(a/step-1e-9);i<=b/step+1e-9;i++)found.push(i*step);return found}
function logticks(a,b){const found=[],steps=b-a>2?[1]:[1,2,5];
for(let p=Math.floor(a);p<=b;p++)steps.forEach(m=>{const t=m*10**p,v=Math.log10(t);
if(v>=a&&v<=b)found.push(t)});return found}
function scale(a,b,start,stop){const pad=(b-a)*.04||Math.abs(b)*.1||1;a-=pad;b+=pad;
const f=v=>start+(v-a)/(b-a)*(stop-start);f.low=a;f.high=b;
f.back=p=>a+(p-start)/(stop-start)*(b-a);return f}
let x;
function draw(){const f=v=>log?Math.log10(v):v,seen=data.series.map(s=>s.values.map((v,i)=>[i+1,v])
.filter(p=>p[1]!==null&&p[0]>=low&&p[0]<=high)),all=seen.flat().map(p=>f(p[1]));
x=scale(low,high,L,W-R);const y=scale(Math.min(...all),Math.max(...all),H-B,T);let text='';
ticks(x.low,x.high,true).forEach(t=>{const a=x(t).toFixed(1);
text+='<line class="grid" x1="'+a+'" x2="'+a+'" y1="'+T+'" y2="'+(H-B)+
'"/><text text-anchor="middle" x="'+a+'" y="'+(H-B+16)+'">'+label(t)+'</text>'});
(log?logticks(y.low,y.high):ticks(y.low,y.high)).forEach(t=>{const b=y(f(t));
text+='<line class="grid" x1="'+L+'" x2="'+(W-R)+'" y1="'+b.toFixed(1)+'" y2="'+b.toFixed(1)+
'"/><text text-anchor="end" x="'+(L-6)+'" y="'+(b+4).toFixed(1)+'">'+label(t)+'</text>'});
[[data.mark,'4 3'],[at,'none']].forEach(([m,dash])=>{if(m!==null&&m>=low&&m<=high)
text+='<line stroke="#888" stroke-dasharray="'+dash+'" x1="'+x(m)+'" x2="'+x(m)+'" y1="'+T+
'" y2="'+(H-B)+'"/>'});
seen.forEach((s,i)=>{const c=data.series[i].color,places=s.map(p=>x(p[0]).toFixed(1)+','+
y(f(p[1])).toFixed(1));text+=places.length===1?'<circle r="3" fill="'+c+'" cx="'+
places[0].replace(',','" cy="')+'"/>':'<polyline fill="none" stroke-width="1.8" stroke="'+c+
'" points="'+places.join(' ')+'"/>'});plot.innerHTML=text;
out.textContent=at===null?'epochs '+low+' to '+high+(log?', logarithmic':''):'epoch '+at+': '+
data.series.filter(s=>s.values[at-1]!=null).map(s=>s.name+' '+label(s.values[at-1])).join(', ');
toggle.setAttribute('aria-pressed',log)}
function span(a,b){const width=Math.max(2,Math.min(longest-1,Math.round(b-a)));
low=Math.max(1,Math.min(longest-width,Math.round(a)));high=low+width;at=null;draw()}
const zoom=k=>{const m=(low+high)/2,h=(high-low)*k/2;span(m-h,m+h)},
move=d=>{const s=Math.max(1,Math.round((high-low)/5))*d;span(low+s,high+s)},
tools=document.createElement('div'),keys={'+':()=>zoom(.5),'=':()=>zoom(.5),'-':()=>zoom(2),
'0':()=>span(1,longest),ArrowLeft:()=>move(-1),ArrowRight:()=>move(1),
l:()=>{if(positive){log=!log;draw()}}};
tools.className='tools';tools.setAttribute('role','toolbar');
tools.setAttribute('aria-label',data.title+': zoom and axis');
function button(text,key,title){const b=document.createElement('button');b.type='button';
b.textContent=text;b.title=title+' (key '+key+')';b.setAttribute('aria-label',title);
b.onclick=keys[key];tools.append(b);return b}
const toggle=button('log','l','Logarithmic axis');toggle.disabled=!positive;
button('+','+','Zoom in');button('\\u2212','-','Zoom out');button('\\u25c0','ArrowLeft','Earlier');
button('\\u25b6','ArrowRight','Later');button('all','0','All epochs');
figure.tabIndex=0;figure.append(tools,out);
figure.addEventListener('keydown',e=>{if(keys[e.key]&&!e.ctrlKey&&!e.metaKey&&!e.altKey){
keys[e.key]();e.preventDefault()}});
const epoch=e=>{const box=svg.getBoundingClientRect(),
v=x.back((e.clientX-box.left)/box.width*svg.viewBox.baseVal.width);
return Math.max(low,Math.min(high,Math.round(v)))};let from=null;
svg.addEventListener('pointerdown',e=>{from=epoch(e)});
svg.addEventListener('pointermove',e=>{at=epoch(e);draw()});
svg.addEventListener('pointerup',e=>{const to=epoch(e);
if(from!==null&&Math.abs(to-from)>1)span(Math.min(from,to),Math.max(from,to));from=null});
svg.addEventListener('pointerleave',()=>{at=null;from=null;draw()});
draw()});
"""
UNDRAWN = ("loss", "penalty", "seconds")
MOST = 2000  # epochs of a curve that zooms; a longer one is a picture, for the size of the page


def learning(network: FittedNetwork) -> str:
    """What became of loss, score and gradients over the epochs."""
    history, about = network.history, network.about
    best = about["best_epoch"]
    words = (
        f"<p>Training ended: {escape(about['stopped'])}. The weights are those of epoch {best} "
        "(dashed line), where the validation loss was lowest.</p>"
    )
    trained = about.get("trained", {})
    if trained.get("networks", 1) > 1:
        words += (
            f"<p>{trained['networks']} networks were trained, and {len(trained['used'])} of them "
            "answer together. The curves are those of the first one.</p>"
        )
    scored = [n for n in history.columns if f"val_{n}" in history and n not in UNDRAWN]
    charts = [
        _figure(
            {"training": history[name], "validation": history[f"val_{name}"]},
            title,
            title.lower() if name == "loss" else title,
            best,
        )
        for name, title in (("loss", "Loss"), *[(n, measure(n).name) for n in scored])
    ]
    norms = {n: v for n, v in network.gradient_norms.items() if n.endswith("weight") and v}
    if norms and max(max(v) for v in norms.values()) > 0:
        charts.append(_figure(norms, "Gradient norm of each layer", "mean norm", None))
    return f'{words}<div class="charts">{"".join(charts)}</div>'


def _figure(
    series: Mapping[str, Sequence[float]], title: str, ylabel: str, mark: int | None
) -> str:
    longest = max(map(len, series.values()))
    if longest > MOST:
        return f"<figure>{_static(series, title, ylabel, mark)}</figure>"
    log = spans_decades(v for values in series.values() for v in values)
    data = {
        "title": title,
        "log": log,
        "mark": mark,
        "frame": [svg.WIDTH, svg.HEIGHT, svg.LEFT, svg.RIGHT, svg.TOP, svg.BOTTOM],
        "series": [
            {
                "name": name,
                "color": svg.color_of(i),
                "values": [float(f"{v:.5g}") if math.isfinite(v) else None for v in values],
            }
            for i, (name, values) in enumerate(series.items())
        ],
    }
    held = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return (
        f'<figure class="curves" aria-label="{escape(title)}">'
        f"{_static(series, title, ylabel, mark)}"
        f'<script type="application/json">{held}</script></figure>'
    )


def _static(
    series: Mapping[str, Sequence[float]], title: str, ylabel: str, mark: int | None
) -> str:
    log = spans_decades(v for values in series.values() for v in values)
    return svg.line_chart(series, title, ylabel=ylabel, log=log, mark=mark)
