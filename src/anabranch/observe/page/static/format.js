// Numbers, times and colours as people read them, and elements without any text being read as markup.

export const count = (value) => (value == null ? "–" : Math.round(value).toLocaleString("en"));

export function short(value) {
  if (value == null || !isFinite(value)) return "–";
  if (Math.abs(value) < 1e-6) return "0";
  const size = Math.abs(value);
  for (const [limit, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (size >= limit) return `${(value / limit).toPrecision(3)}${unit}`;
  }
  return size >= 100 || Number.isInteger(value) ? String(Math.round(value)) : value.toPrecision(2);
}

export function bytes(value) {
  if (value == null) return "–";
  let left = value;
  for (const unit of ["B", "kB", "MB", "GB", "TB"]) {
    if (left < 1000 || unit === "TB") return `${unit === "B" ? Math.round(left) : left.toPrecision(3)} ${unit}`;
    left /= 1000;
  }
  return "";
}

export function seconds(value) {
  if (value == null) return "–";
  if (value < 1) return `${Math.round(value * 1000)} ms`;
  if (value < 120) return `${value.toPrecision(3)} s`;
  return value < 7200 ? `${(value / 60).toFixed(1)} min` : `${(value / 3600).toFixed(1)} h`;
}

export const clock = (at) => (at ? new Date(at * 1000).toLocaleTimeString("en-GB") : "");

export function el(tag, attributes = {}, ...children) {
  const svg = ["svg", "path", "rect", "g", "text", "line", "title", "circle"].includes(tag);
  const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child != null));
  return made;
}

export function fill(parent, ...children) {
  parent.replaceChildren(...children.filter((child) => child != null));
  return parent;
}

const BASE = [192, 32, 152, 268, 345, 52, 224, 12, 118, 300, 172, 82];

const owners = new Map();
export function siteColour(site, dark) {
  const key = 2 * site + dark;
  if (!owners.has(key)) owners.set(key, toneOf(site, dark));
  return owners.get(key);
}
function toneOf(site, dark) {
  const hue = site < BASE.length ? BASE[site] : (site * 137.508 + 20) % 360;
  const shade = ((site / BASE.length) | 0) % 3;
  return `hsl(${hue} ${62 - shade * 12}% ${(dark ? 52 : 44) + shade * 9}%)`;
}

// From nothing to much: a dark river to a bright one, or paper to deep water
const DARK = [[13, 27, 34], [12, 74, 94], [20, 140, 168], [110, 214, 218], [255, 246, 196]];
const LIGHT = [[240, 245, 247], [176, 217, 226], [64, 158, 186], [14, 96, 130], [70, 20, 84]];

const ramps = new Map();
export function ramp(dark) {
  if (!ramps.has(dark)) ramps.set(dark, shades(dark ? DARK : LIGHT));
  return ramps.get(dark);
}
function shades(steps) {
  return Array.from({ length: 256 }, (_, value) => {
    const at = (value / 255) * (steps.length - 1);
    const low = Math.min(steps.length - 2, Math.floor(at));
    return steps[low].map((part, index) => Math.round(part + (steps[low + 1][index] - part) * (at - low)));
  });
}

export const isDark = () => document.documentElement.dataset.theme === "dark";

// Asked for once per theme: a look at computed styles for each mark would cost more than drawing it
const known = new Map();
export function colour(name) {
  const key = `${document.documentElement.dataset.theme} ${name}`;
  if (!known.has(key)) known.set(key, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
  return known.get(key);
}

// Only what has changed is set: each setting costs the browser work, even to what was there
export const say = (element, text) => { if (element.textContent !== text) element.textContent = text; };
export const set = (element, name, value) => { if (element.getAttribute(name) !== value) element.setAttribute(name, value); };

// Widths are told by the browser when they change: to ask after each drawing would lay out the page each time
const widths = new Map();
let resized = () => {};
export const onResize = (function_) => { resized = function_; };
const observer = new ResizeObserver((entries) => {
  let other = false;
  for (const { target, contentRect } of entries) {
    if (!target.isConnected) { widths.delete(target); observer.unobserve(target); }
    else if (contentRect.width && widths.get(target) !== contentRect.width) { widths.set(target, contentRect.width); other = true; }
  }
  if (other) resized();
});
function widthOf(canvas) {
  if (!widths.has(canvas)) {
    widths.set(canvas, canvas.clientWidth || canvas.parentElement?.clientWidth || 300);
    observer.observe(canvas);
  }
  return Math.max(1, widths.get(canvas));
}

export function prepare(canvas, height) {
  const width = widthOf(canvas);
  const scale = Math.min(2, window.devicePixelRatio || 1);
  const [w, h] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  return [context, width];
}

const tip = () => document.getElementById("tip");
export function showTip(text, x, y) {
  const box = tip();
  box.textContent = text;
  box.hidden = !text;
  box.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - box.offsetWidth - 8))}px`;
  box.style.top = `${Math.max(4, Math.min(y + 14, innerHeight - box.offsetHeight - 8))}px`;
}
export const hideTip = () => { tip().hidden = true; };

export function choices(parent, options, chosen, choose) {
  fill(parent, ...options.map(([name, label]) => el("button", {
    type: "button", "aria-pressed": String(name === chosen), onclick: () => choose(name),
  }, label)));
}
