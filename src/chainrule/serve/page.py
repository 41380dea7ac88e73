"""The page of a service: what it does, what it wants, and a form to try it. No outside request."""

from __future__ import annotations

import base64
import hashlib
import html
import json

from chainrule.inspect.core.pages import page
from chainrule.serve.description import summary_of
from chainrule.serve.limits import Limits
from chainrule.serve.pictures import takes_images
from chainrule.serve.rows import example, has_intervals, wanted
from chainrule.train import FittedNetwork

__all__ = ["front_page", "policy_of"]

STYLE = """
textarea{width:100%;box-sizing:border-box;min-height:12em;font:14px/1.4 ui-monospace,monospace;
background:var(--ground);color:var(--ink);border:1px solid var(--line);border-radius:4px;
padding:8px}
button{font:inherit;padding:6px 16px;margin:8px 12px 8px 0}
pre{border:1px solid var(--line);border-radius:4px;padding:8px;overflow-x:auto;white-space:pre-wrap}
.scroll{overflow-x:auto}
td,th{text-align:left;vertical-align:top;padding:3px 12px 3px 0}
"""
SCRIPT = """
const send=document.querySelector('#send'),answer=document.querySelector('#answer'),
rows=document.querySelector('#rows'),more=document.querySelector('#more');
send.addEventListener('click',async()=>{
 answer.textContent='...';
 const query=more&&more.checked?'?'+more.value:'';
 try{
  const began=performance.now();
  const reply=await fetch('predict'+query,{method:'POST',
   headers:{'Content-Type':'application/json'},body:rows.value});
  const text=JSON.stringify(await reply.json(),null,1);
  answer.textContent=reply.status+', '+(performance.now()-began).toFixed(1)+' ms\\n'+text;
 }catch(error){answer.textContent=String(error)}
});
"""


# The same with the file of an image as the body.
UPLOAD = """
const send=document.querySelector('#send'),answer=document.querySelector('#answer'),
file=document.querySelector('#file'),more=document.querySelector('#more');
send.addEventListener('click',async()=>{
 if(!file.files.length){answer.textContent='Choose an image first.';return}
 answer.textContent='...';
 const query=more&&more.checked?'?'+more.value:'';
 try{
  const began=performance.now();
  const reply=await fetch('predict'+query,{method:'POST',
   headers:{'Content-Type':file.files[0].type||'image/png'},body:file.files[0]});
  const text=JSON.stringify(await reply.json(),null,1);
  answer.textContent=reply.status+', '+(performance.now()-began).toFixed(1)+' ms\\n'+text;
 }catch(error){answer.textContent=String(error)}
});
"""


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def policy_of(network: FittedNetwork) -> str:
    """What a browser may do: of scripts only that of the page runs, and nothing is loaded from
    anywhere else."""
    return (
        f"default-src 'none'; script-src {_hash(_script(network))}; style-src 'unsafe-inline'; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )


def _script(network: FittedNetwork) -> str:
    return UPLOAD if takes_images(network) else SCRIPT


def front_page(network: FittedNetwork, limits: Limits) -> str:
    """The page at the root."""
    listed = "".join(
        [
            f"<tr><td><code>{html.escape(name)}</code></td><td>{html.escape(kind.kind)}</td>"
            f"<td>{html.escape(kind.rule)}</td></tr>"
            for name, kind in wanted(network).items()
        ]
    )
    how = _of_images(limits) if takes_images(network) else _of_rows(network, limits)
    body = f"""<p>{html.escape(summary_of(network))}
{how}
<p><button id="send" type="button">Predict</button>{_option(network)}</p>
<pre id="answer" role="status" aria-label="Answer">The answer will stand here.</pre>
<h2>The columns of a row</h2>
<div class="scroll"><table><thead><tr><th>name</th><th>kind</th><th>rule</th></tr></thead>
<tbody>{listed}</tbody></table></div>
<h2>More</h2>
<p><a href="openapi.json">openapi.json</a> describes the service for programs,
<a href="health">health</a> says how it is.</p>
<script>{_script(network)}</script>"""
    return page(f"{network.about['target']}, served by chainrule", body, STYLE)


def _of_rows(network: FittedNetwork, limits: Limits) -> str:
    row = example(network)
    return f"""Send a row, or a list of at most {limits.max_rows} rows, as JSON; the answers come in
the same order.</p>
<pre>curl -H 'Content-Type: application/json' -d {html.escape(_quoted(json.dumps(row)))} \\
  ADDRESS/predict</pre>
<h2>Try it</h2>
<label for="rows">Rows as JSON</label>
<textarea id="rows" spellcheck="false">{html.escape(json.dumps([row], indent=1))}</textarea>"""


def _of_images(limits: Limits) -> str:
    return f"""Send the file of an image, or as JSON a row or a list of at most {limits.max_rows}
rows with images in base64; the answers come in the same order. A request has at most
{limits.max_bytes:,} bytes, and its images together {limits.max_pixels:,} pixels.</p>
<pre>curl -H 'Content-Type: image/png' --data-binary @picture.png ADDRESS/predict</pre>
<h2>Try it</h2>
<p><label for="file">An image</label> <input type="file" id="file" accept="image/*"></p>"""


def _option(network: FittedNetwork) -> str:
    if network.target.classes:
        value, text = "probabilities=true", "with probabilities"
    elif has_intervals(network):
        value, text = "interval=0.9", "with intervals of 90 %"
    else:
        return ""
    box = f'<input type="checkbox" id="more" value="{value}" aria-label="{text}">'
    return f"<label>{box} {text}</label>"


def _quoted(text: str) -> str:
    """Text in single quotes for a shell."""
    return "'" + text.replace("'", "'\\''") + "'"
