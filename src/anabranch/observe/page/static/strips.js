// The partition map: a strip for each exchange, as long as its slots; what each partition is, has and does.

import { store, value } from "./store.js";
import { bytes, choices, colour, count, el, fill, hideTip, isDark, prepare, ramp, say, set, showTip, siteColour } from "./format.js";

const MODES = [["sites", "owner"], ["rows", "load"], ["size", "state"], ["aside", "put aside"], ["rows_out", "results"]];
export const MARKS = [["pinned", 1, "--limit"], ["moving", 2, "--waiting"], ["paused", 4, "--bad"], ["aside", 8, "--aside"], ["hot", 16, "--bad"], ["by hand", 32, "--river"]];
const HEIGHT = 46, UNDER = 9;
let mode = "sites";
const sets = new Map();
function marked(marks) {
  if (!sets.has(marks)) sets.set(marks, MARKS.filter(([, bit]) => marks & bit));
  return sets.get(marks);
}
const strips = new Map();

export function bounds(exchange, at) {
  return [exchange.starts[at], at + 1 < exchange.count ? exchange.starts[at + 1] : exchange.slots];
}

function at(exchange, slot) {
  let low = 0, high = exchange.count - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (exchange.starts[middle] <= slot) low = middle;
    else high = middle - 1;
  }
  return low;
}

export function words(name, exchange, index) {
  const [first, end] = bounds(exchange, index);
  const marks = MARKS.filter(([, bit]) => exchange.marks[index] & bit).map(([mark]) => mark);
  const of = (column) => value(exchange[column][index], exchange.top[column]);
  return `${name}/${first}: slots ${first} to ${end - 1}, on site ${exchange.sites[index]}\n${count(of("rows"))} rows in, ${count(of("rows_out"))} results, ${bytes(of("size"))} of state${of("aside") ? `, ${bytes(of("aside"))} aside` : ""}${marks.length ? `\n${marks.join(", ")}` : ""}`;
}

// What is drawn: each partition, or where there are more than pixels the busiest of those in each pixel
function columns(exchange, width) {
  const scale = width / exchange.slots, found = [];
  if (exchange.count <= width / 2) {
    for (let index = 0; index < exchange.count; index++) {
      const [first, end] = bounds(exchange, index);
      found.push({ x: first * scale, wide: Math.max(0.6, (end - first) * scale - (exchange.count < 200 ? 1 : 0)), index, marks: exchange.marks[index] });
    }
    return found;
  }
  const by = exchange[mode === "sites" ? "rows" : mode];
  for (let index = 0; index < exchange.count; index++) {
    const x = Math.floor(exchange.starts[index] * scale), last = found.at(-1);
    if (last?.x === x) {
      last.marks |= exchange.marks[index];
      if (by[index] > by[last.index]) last.index = index;
    } else found.push({ x, wide: 1, index, marks: exchange.marks[index] });
  }
  return found;
}

function make(name, parent) {
  const canvas = el("canvas", { class: "strip", tabindex: "0", role: "img" });
  const about = el("small");
  const readout = el("p", { class: "readout", "aria-live": "polite" });
  const strip = { canvas, about, readout, cursor: null };
  const exchange = () => store.shown?.exchanges[name];
  const point = (index, event) => {
    strip.cursor = index;
    const text = words(name, exchange(), index);
    readout.textContent = text.replaceAll("\n", ". ");
    if (event) showTip(text, event.clientX, event.clientY);
    renderStrips();
  };
  canvas.addEventListener("pointermove", (event) => {
    if (exchange()) point(at(exchange(), (event.offsetX / canvas.clientWidth) * exchange().slots), event);
  });
  canvas.addEventListener("pointerleave", hideTip);
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, PageDown: 16, PageUp: -16, Home: -Infinity, End: Infinity }[event.key];
    if (step === undefined || !exchange()) return;
    event.preventDefault();
    point(Math.max(0, Math.min(exchange().count - 1, (strip.cursor ?? (step > 0 ? -1 : 1)) + step)), null);
  });
  parent.append(el("div", {}, el("h3", {}, name, about), canvas, readout));
  strips.set(name, strip);
  return strip;
}

export function renderStrips() {
  const exchanges = store.shown?.exchanges ?? {};
  const parent = document.getElementById("strips");
  const names = Object.keys(exchanges);
  if (names.join() !== [...strips.keys()].join()) {
    fill(parent);
    strips.clear();
  }
  if (!names.length) return fill(parent, el("p", { class: "empty" }, "No partitions yet: they come with the first epoch."));
  const dark = isDark(), shades = ramp(dark).map(([r, g, b]) => `rgb(${r} ${g} ${b})`);
  const moved = store.decisions.filter((one) => one.accepted && one.what === "move" && one.epoch <= store.shown.epoch && store.shown.epoch - one.epoch <= 3).slice(-200);
  for (const name of names) {
    const exchange = exchanges[name], strip = strips.get(name) ?? make(name, parent);
    const [context, width] = prepare(strip.canvas, HEIGHT + UNDER);
    const scale = width / exchange.slots;
    const drawn = columns(exchange, width);
    for (const { x, wide, index } of drawn) {
      context.fillStyle = mode === "sites" ? siteColour(exchange.sites[index], dark) : shades[exchange[mode][index]];
      context.fillRect(x, 0, wide, HEIGHT);
    }
    if (mode === "sites") {
      // How full the column is tells the load
      context.fillStyle = dark ? "rgb(8 16 20 / 58%)" : "rgb(255 255 255 / 62%)";
      for (const { x, wide, index } of drawn) context.fillRect(x, 0, wide, (HEIGHT - 4) * (1 - exchange.rows[index] / 255));
    }
    for (const { x, wide, marks } of drawn) {
      if (!marks) continue;
      const shown = marked(marks);
      shown.forEach(([, , tone], order) => {
        context.fillStyle = colour(tone);
        context.fillRect(x, HEIGHT + 2 + order * (UNDER / shown.length), Math.max(2, wide), Math.max(2, UNDER / shown.length - 1));
      });
    }
    context.fillStyle = colour("--text");
    for (const one of moved) {
      if (one.exchange !== name) continue;
      const [first, end] = bounds(exchange, at(exchange, one.partition)), middle = ((first + end) / 2) * scale;
      context.beginPath();
      context.moveTo(middle, 12); context.lineTo(middle - 5, 2); context.lineTo(middle + 5, 2);
      context.fill();
    }
    if (strip.cursor !== null && strip.cursor < exchange.count) {
      const [first, end] = bounds(exchange, strip.cursor);
      context.strokeStyle = colour("--text");
      context.lineWidth = 2;
      context.strokeRect(first * scale, 1, Math.max(2, (end - first) * scale), HEIGHT - 2);
    }
    const owners = new Set(exchange.sites).size;
    say(strip.about, `${count(exchange.count)} partitions, ${count(exchange.slots)} slots, ${owners} sites · most rows ${count(exchange.top.rows)}, most state ${bytes(exchange.top.size)}`);
    set(strip.canvas, "aria-label", `Partitions of exchange ${name}: ${strip.about.textContent}. Arrow keys go from one to the next.`);
  }
  return null;
}

export function setUpStrips() {
  const choose = (name) => { mode = name; choices(document.getElementById("strip-modes"), MODES, mode, choose); renderStrips(); };
  choose(mode);
  fill(document.getElementById("marks"), ...MARKS.map(([name, , tone]) => {
    const key = el("span", { class: "key" }, name);
    key.style.setProperty("--c", `var(${tone})`);
    return key;
  }), el("span", {}, "▼ moved in the last epochs"));
}
