"""How the pages look and what their controls do; no file and no request beside the pages."""

__all__ = ["INDEX_SCRIPT", "PAGE_SCRIPT", "STYLE"]

STYLE = """
body{max-width:76rem;overflow-wrap:anywhere}
pre{overflow-wrap:normal}
a{color:var(--mark)}
.badge{display:inline-block;padding:0 .55rem;border-radius:1rem;font-size:.85rem;
border:1.5px solid currentColor;white-space:nowrap}
.reproduced{color:#00694d}.erratum{color:#a34300}.in-part{color:#7a5c00}
.not-reproduced{color:#96205a}.not-checked{color:#595959}
@media (prefers-color-scheme:dark){.reproduced{color:#4fd1a5}.erratum{color:#ffab6b}
.in-part{color:#e8c547}.not-reproduced{color:#f29ac4}.not-checked{color:#b0b5ba}}
form{display:flex;flex-wrap:wrap;gap:.5rem;margin:.8rem 0}
form input,form select{font:inherit;padding:.35rem .6rem;border:1px solid var(--line);
border-radius:6px;background:var(--ground);color:inherit;min-width:0}
form input{flex:1 1 14rem}form select{flex:0 1 auto;max-width:min(100%,15rem)}
select:focus-visible,a:focus-visible{outline:2px solid var(--mark);outline-offset:2px}
.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(15rem,1fr));gap:.9rem;
padding:0;margin:0;list-style:none}
.cards a{display:flex;flex-direction:column;height:100%;border:1px solid var(--line);
border-radius:8px;overflow:hidden;color:inherit;text-decoration:none}
.cards a:hover{border-color:var(--mark)}
.thumb{background:#fff;height:10rem;display:flex;align-items:center;justify-content:center}
.thumb img{max-width:100%;max-height:10rem}
.about{padding:.5rem .7rem .7rem;display:flex;flex-direction:column;gap:.3rem;flex:1}
.about b{font-weight:600}.about .row{display:flex;justify-content:space-between;gap:.5rem;
flex-wrap:wrap;margin-top:auto}
.picture{background:#fff;border-radius:8px;padding:.4rem;margin:.8rem 0;overflow-x:auto}
.picture img{display:block;margin:auto}
.picture a{display:block}
iframe{width:100%;height:34rem;border:1px solid var(--line);border-radius:8px}
td,th{vertical-align:top}
.claims td{min-width:6.5rem;overflow-wrap:break-word}
@media (max-width:600px){.claims thead{display:none}.claims tr{display:block;padding:.5rem 0;
border-bottom:1px solid var(--line)}.claims td{display:grid;
grid-template-columns:5.5rem minmax(0,1fr);border:0;padding:.1rem 0}
.claims td::before{content:attr(data-head);color:var(--soft)}
.claims td>*{grid-column:2}.claims td br{display:none}.claims td:empty{display:none}
.claims td:first-child{font-weight:600}}
.ways{display:flex;justify-content:space-between;gap:1rem;flex-wrap:wrap}
code .k{color:var(--mark)}code .s{color:#00694d}code .c{color:var(--soft)}
@media (prefers-color-scheme:dark){code .s{color:#4fd1a5}}
pre{padding:.7rem;border:1px solid var(--line);border-radius:8px}
[hidden]{display:none!important}
"""
# Filters: what is typed, and three lists. They stay in the address, so that a view can be kept.
INDEX_SCRIPT = """
const form=document.querySelector('form'),cards=[...document.querySelectorAll('.cards li')],
count=document.querySelector('#count'),fields=[...form.elements].filter(e=>e.name);
function keep(){const p=new URLSearchParams(fields.filter(f=>f.value).map(f=>[f.name,f.value]));
try{history.replaceState(null,'','#'+p)}catch(e){}}
function show(){const words=form.words.value.toLowerCase().split(/\\s+/).filter(Boolean);let n=0;
for(const c of cards){const d=c.dataset,v=form.course.value;
const fits=(!v||d.course.split(' ').includes(v))&&['group','verdict'].every(k=>!form[k].value||
d[k]===form[k].value)&&words.every(w=>d.words.includes(w));
c.hidden=!fits;n+=fits}
count.textContent=n+' of '+cards.length+' entries'}
const given=new URLSearchParams(location.hash.slice(1));
for(const f of fields)if(given.has(f.name))f.value=given.get(f.name);
form.addEventListener('input',()=>{show();keep()});
form.addEventListener('submit',e=>e.preventDefault());
document.addEventListener('keydown',e=>{
if(e.key==='/'&&e.target!==form.words){form.words.focus();e.preventDefault()}
else if(e.key==='Escape'&&e.target===form.words){form.reset();show();keep()}});
form.hidden=false;show();
"""
PAGE_SCRIPT = """
document.addEventListener('keydown',e=>{
if(e.ctrlKey||e.metaKey||e.altKey||['INPUT','IFRAME'].includes(e.target.tagName))return;
const way={ArrowLeft:'prev',ArrowRight:'next',Escape:'up'}[e.key];
const link=way&&document.querySelector('a[rel='+way+']');if(link)link.click()});
"""
