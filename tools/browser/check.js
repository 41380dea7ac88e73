// Runs in a page that holds the page to check in frames of several widths; writes what is wrong.
const wrong = [];
const tell = (frame, text) => wrong.push(`${frame.clientWidth} px: ${text}`);

// --- colors -----------------------------------------------------------------------------------

function channels(color) {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  canvas.fillStyle = color;
  canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data];
}

function luminance(rgb) {
  const [r, g, b] = rgb.map(v => v / 255).map(v => v <= 0.04 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function ground(element, view) {
  for (let e = element; e; e = e.parentElement) {
    const [r, g, b, alpha] = channels(view.getComputedStyle(e).backgroundColor);
    if (alpha > 250) return [r, g, b];
  }
  return [255, 255, 255];
}

function contrast(element, view) {
  const ink = luminance(channels(view.getComputedStyle(element).color).slice(0, 3));
  const below = luminance(ground(element, view));
  return (Math.max(ink, below) + 0.05) / (Math.min(ink, below) + 0.05);
}

function checkColors(frame, view, page, dark) {
  if (view.matchMedia('(prefers-color-scheme: dark)').matches !== dark)
    tell(frame, 'the browser does not take the color scheme');
  const light = luminance(ground(page.body, view));
  if (dark !== light < 0.2) tell(frame, `the ground has luminance ${light.toFixed(2)}`);
  for (const e of page.querySelectorAll('body *')) {
    const text = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!text || e.namespaceURI.endsWith('svg') || ['SCRIPT', 'STYLE'].includes(e.tagName)) continue;
    if (e.closest('svg') || e.disabled) continue;
    const ratio = contrast(e, view);
    if (ratio < 4.5) tell(frame, `<${e.tagName}> ${e.textContent.slice(0, 30)}: contrast ${ratio.toFixed(1)}`);
  }
}

// --- layout and names -------------------------------------------------------------------------

function checkLayout(frame, page) {
  const root = page.scrollingElement;
  if (root.scrollWidth > root.clientWidth) {
    const wide = [...page.querySelectorAll('body *')].find(e => e.getBoundingClientRect().right > root.clientWidth + 1);
    tell(frame, `scrolls to the side: ${root.scrollWidth} px, by <${wide ? wide.tagName : '?'}>`);
  }
}

function checkNames(frame, page) {
  if (page.querySelectorAll('h1').length !== 1) tell(frame, 'has not one <h1>');
  if (!page.documentElement.lang) tell(frame, 'has no language');
  for (const e of page.querySelectorAll('img:not([alt])')) tell(frame, `<img> without alt: ${e.src.slice(0, 40)}`);
  for (const e of page.querySelectorAll('button,input,select,[role=button]'))
    if (!(e.getAttribute('aria-label') || (e.tagName !== 'SELECT' && e.textContent.trim()))) tell(frame, `<${e.tagName}> without a name`);
  for (const e of page.querySelectorAll('a[href^="#"]'))
    if (!page.querySelector(e.getAttribute('href'))) tell(frame, `${e.getAttribute('href')} leads nowhere`);
}

// --- keys -------------------------------------------------------------------------------------

function press(view, element, key) {
  element.dispatchEvent(new view.KeyboardEvent('keydown', {key, bubbles: true, cancelable: true}));
}

// Presses a key and says so if what it should change stays as it is.
function changes(frame, view, element, key, state) {
  const before = state();
  press(view, element, key);
  if (state() === before) tell(frame, `the key ${key} changes nothing`);
}

function checkCurves(frame, view, figure) {
  figure.focus();
  if (view.document.activeElement !== figure) tell(frame, 'curves cannot be focused');
  const lines = () => figure.querySelector('.plot').innerHTML, all = lines();
  if (/NaN|Infinity/.test(all)) tell(frame, 'curves have places that are no numbers');
  for (const key of ['+', '-', '+', 'ArrowRight', 'ArrowLeft']) changes(frame, view, figure, key, lines);
  press(view, figure, '0');
  if (lines() !== all) tell(frame, 'the key 0 does not show all epochs');
  const log = figure.querySelector('button');
  if (!log.disabled) changes(frame, view, figure, 'l', () => log.getAttribute('aria-pressed') + lines());
  if (/NaN|Infinity/.test(lines())) tell(frame, 'curves have places that are no numbers');
}

// A slider is moved by keys by the browser itself; here is seen that something follows it.
function checkSlider(frame, view, box) {
  const slider = box.querySelector('input[type=range]');
  if (!slider) return tell(frame, 'a threshold has no slider');
  if (slider.tabIndex < 0 || slider.disabled) tell(frame, 'the slider cannot be focused');
  const state = () => box.querySelector('output').textContent + [...box.querySelectorAll('circle.at')].map(c => c.outerHTML);
  const before = state();
  for (const value of [1, 99]) {
    slider.value = value;
    slider.dispatchEvent(new view.Event('input', {bubbles: true}));
    if (/NaN|Infinity|undefined/.test(state())) tell(frame, 'the slider leads to what is no number');
  }
  if (state() === before) tell(frame, 'the slider changes nothing');
}

// What is typed and chosen leaves fewer cards, and an empty search shows all of them again.
function checkFilters(frame, view, page, form) {
  const cards = [...page.querySelectorAll('.cards li')], shown = () => cards.filter(c => !c.hidden).length;
  press(view, page.body, '/');
  if (page.activeElement !== form.words) tell(frame, 'the key / does not lead to the search');
  const all = shown(), set = (field, value) => {
    field.value = value;
    field.dispatchEvent(new view.Event('input', {bubbles: true}));
    return shown();
  };
  if (all !== cards.length) tell(frame, 'not all cards are shown at first');
  if (set(form.words, 'nothing has this word') !== 0) tell(frame, 'the search leaves cards of other words');
  if (set(form.words, cards[0].querySelector('b').textContent) < 1) tell(frame, 'the search does not find a title');
  press(view, form.words, 'Escape');
  if (form.words.value || shown() !== all) tell(frame, 'the key Escape does not empty the search');
  for (const kind of ['course', 'group', 'verdict']) {
    const all = c => kind === 'course' ? c.dataset.course.split(' ') : [c.dataset[kind]];
    const value = all(cards[0])[0], n = cards.filter(c => all(c).includes(value)).length;
    if (set(form[kind], value) !== n) tell(frame, `the filter by ${kind} shows other cards`);
    set(form[kind], '');
  }
  if (shown() !== all) tell(frame, 'cards do not come back');
  for (const image of page.querySelectorAll('.cards img'))
    if (image.complete && !image.naturalWidth) tell(frame, `${image.getAttribute('src')} shows nothing`);
}

// Numbers of which a part stands in another line.
function brokenNumbers(cell) {
  const page = cell.ownerDocument, range = page.createRange(), found = [];
  const texts = page.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  while (texts.nextNode())
    for (const match of texts.currentNode.data.matchAll(/-?\d+\.\d+/g)) {
      range.setStart(texts.currentNode, match.index);
      range.setEnd(texts.currentNode, match.index + match[0].length);
      if (new Set([...range.getClientRects()].map(r => Math.round(r.top))).size > 1) found.push(match[0]);
    }
  return found;
}

// A page of the atlas: pictures are there and can be read, claims lie inside, arrows lead on.
function checkEntry(frame, view, page) {
  const width = page.scrollingElement.clientWidth;
  for (const image of page.querySelectorAll('.picture img')) {
    const name = image.getAttribute('src'), shown = image.getBoundingClientRect();
    if (!image.complete || !image.naturalWidth) tell(frame, `${name} shows nothing`);
    else if (shown.width < 0.5 * image.getAttribute('width')) tell(frame, `${name} is too small to read: ${Math.round(shown.width)} px`);
  }
  if (!page.querySelector('.picture img')) tell(frame, 'has no picture');
  if (!page.querySelector('pre code')) tell(frame, 'has no code');
  const cells = [...page.querySelectorAll('.claims td')];
  if (!cells.length) tell(frame, 'has no claims');
  for (const cell of cells)
    if (cell.getBoundingClientRect().right > width + 1) tell(frame, `the claim ${cell.textContent.slice(0, 30)} is cut off`);
  for (const number of cells.flatMap(brokenNumbers)) tell(frame, `the number ${number} is broken in two lines`);
  for (const [key, way] of [['ArrowLeft', 'prev'], ['ArrowRight', 'next'], ['Escape', 'up']]) {
    const link = page.querySelector(`a[rel=${way}]`);
    if (!link) continue;
    let followed = false;
    link.addEventListener('click', e => { followed = true; e.preventDefault(); }, {once: true});
    press(view, page.body, key);
    if (!followed) tell(frame, `the key ${key} does not lead to ${link.getAttribute('href')}`);
  }
  if (!page.querySelector('a[rel=up]')) tell(frame, 'has no way back to the index');
}

// Words of drawings in SVG: inside their drawing, none over another.
function checkDrawings(frame, view, page) {
  for (const box of page.querySelectorAll('.drawing')) {
    const svg = box.shadowRoot && box.shadowRoot.querySelector('svg');
    if (!svg) { tell(frame, `${box.id} has no drawing`); continue; }
    const name = box.id, whole = svg.getBoundingClientRect();
    const words = [...svg.querySelectorAll('text')].filter(t => t.textContent.trim() && view.getComputedStyle(t).display !== 'none');
    const boxes = words.map(t => [t.textContent, t.getBoundingClientRect()]).filter(([, b]) => b.width);
    if (!boxes.length) tell(frame, `${name} has no words`);
    boxes.forEach(([text, b], k) => {
      if (b.left < whole.left - 1 || b.right > whole.right + 1 || b.top < whole.top - 1 || b.bottom > whole.bottom + 1)
        tell(frame, `${name}: ${text} lies outside`);
      for (const [other, o] of boxes.slice(k + 1)) {
        const across = Math.min(b.right, o.right) - Math.max(b.left, o.left);
        const along = Math.min(b.bottom, o.bottom) - Math.max(b.top, o.top);
        if (Math.min(across, along) > 3) tell(frame, `${name}: ${text} covers ${other}`);
      }
    });
  }
}

function checkKeys(frame, view, page, expected) {
  const figures = [...page.querySelectorAll('figure.curves')], place = page.querySelector('#place');
  const toggles = [...page.querySelectorAll('svg [role=button]')];
  const sliders = [...page.querySelectorAll('.threshold')];
  const form = page.querySelector('form');
  const drawings = page.querySelectorAll('.drawing').length > 0;
  if (expected === 'entry') checkEntry(frame, view, page);
  if (drawings) checkDrawings(frame, view, page);
  const found = {'': true, entry: true, drawings, filters: !!form, curves: figures.length > 0, steps: !!place, modules: toggles.length > 0, slider: sliders.length > 0};
  if (!found[expected]) tell(frame, `has no ${expected} to control`);
  if (form) checkFilters(frame, view, page, form);
  figures.forEach(figure => checkCurves(frame, view, figure));
  sliders.forEach(box => checkSlider(frame, view, box));
  if (place) {
    const state = () => place.textContent + [...page.querySelectorAll('.step')].map(s => s.hidden);
    for (const key of ['ArrowRight', 'End', 'ArrowLeft', 'Home']) changes(frame, view, page.body, key, state);
  }
  const shown = () => [...page.querySelectorAll('svg *')].map(e => view.getComputedStyle(e).display).join();
  for (const t of toggles.slice(0, 3)) {
    if (view.getComputedStyle(t).display === 'none' || !t.getClientRects().length) continue;
    if (t.tabIndex < 0) tell(frame, 'a module cannot be focused');
    changes(frame, view, t, 'Enter', () => t.closest('svg').outerHTML + shown());
    break;
  }
}

function checkAll(dark, expected) {
  for (const frame of document.querySelectorAll('iframe')) {
    const view = frame.contentWindow, page = frame.contentDocument;
    try {
      checkLayout(frame, page);
      checkNames(frame, page);
      checkColors(frame, view, page, dark);
      checkKeys(frame, view, page, expected);
      checkLayout(frame, page);
    } catch (error) {
      tell(frame, `the check failed: ${error}`);
    }
    view.heard.forEach(text => tell(frame, text));
  }
  const result = document.createElement('pre');
  result.id = 'result';
  result.textContent = JSON.stringify(wrong);
  document.body.append(result);
}
