// Slots x time: a column for each epoch, a row for each range of slots; decisions as dots on it.

import { look, store, value } from "./store.js";
import { bytes, choices, colour, count, el, fill, hideTip, isDark, prepare, ramp, say, set, showTip } from "./format.js";

const MODES = [["rows", "load"], ["size", "state"]];
const HEIGHT = 150;
const TONES = { spill: "--aside", cleanup: "--aside", replan: "--bad" };
let mode = "rows";
const maps = new Map();

// The picture of all epochs that are shown, a pixel for each range of slots. What stands there from the last time stays
function painted(map, epochs, cells, top) {
  const wide = epochs.length, style = `${mode} ${isDark()} ${top} ${wide} ${cells}`, shown = epochs.map(([, column]) => column);
  let { picture } = map, start = 0;
  if (picture?.style === style) {
    // The same epochs, moved to the left by those that are new
    const found = shown.lastIndexOf(picture.shown.at(-1)) + 1;
    if (shown.slice(0, found).every((column, at) => column === picture.shown[at + wide - found])) start = found;
  } else picture = { style, canvas: Object.assign(document.createElement("canvas"), { width: wide, height: cells }) };
  const context = picture.canvas.getContext("2d");
  if (start && start < wide) {
    context.globalCompositeOperation = "copy";
    context.drawImage(picture.canvas, start - wide, 0);
    context.globalCompositeOperation = "source-over";
  }
  if (start < wide) context.putImageData(columns(epochs.slice(start), cells, top), start, 0);
  map.picture = { ...picture, shown };
  return picture.canvas;
}

function columns(epochs, cells, top) {
  const shades = ramp(isDark()), image = new ImageData(epochs.length, cells), wide = epochs.length;
  epochs.forEach(([, column], x) => {
    const [own, bytes_] = column[mode], scale = own / top / 255;
    for (let y = 0; y < Math.min(cells, bytes_.length); y++) {
      const [r, g, b] = shades[Math.min(255, Math.round(bytes_[y] * bytes_[y] * scale))], at = 4 * (y * wide + x);
      image.data[at] = r; image.data[at + 1] = g; image.data[at + 2] = b; image.data[at + 3] = 255;
    }
  });
  return image;
}

function shownEpochs(name, width) {
  const known = [...(store.heat[name]?.entries() ?? [])];
  return known.slice(-Math.max(20, Math.floor(width / 2)));
}

function make(name, parent) {
  const canvas = el("canvas", { class: "strip", role: "img", tabindex: "0" });
  const about = el("small");
  parent.append(el("div", {}, el("h3", {}, name, about), canvas));
  const map = { canvas, about, epochs: [] };
  const epochAt = (event) => map.epochs[Math.min(map.epochs.length - 1, Math.floor((event.offsetX / canvas.clientWidth) * map.epochs.length))];
  canvas.addEventListener("pointermove", (event) => {
    const found = epochAt(event);
    if (!found) return;
    const [epoch, column] = found, [top, cells] = column[mode];
    const cell = Math.min(cells.length - 1, Math.max(0, Math.floor((event.offsetY / HEIGHT) * cells.length)));
    const slots = store.shown?.exchanges[name]?.slots ?? cells.length;
    const much = value(cells[cell], top);
    showTip(`epoch ${epoch}, slots ${Math.floor((cell * slots) / cells.length)} to ${Math.floor(((cell + 1) * slots) / cells.length) - 1}\n${mode === "rows" ? `${count(much)} rows` : bytes(much)}`, event.clientX, event.clientY);
  });
  canvas.addEventListener("pointerleave", hideTip);
  canvas.addEventListener("click", (event) => { const found = epochAt(event); if (found) look(found[0]); });
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || !map.epochs.length) return;
    event.preventDefault();
    const at = map.epochs.findIndex(([epoch]) => epoch === (store.cursor ?? map.epochs.at(-1)[0]));
    look(map.epochs[Math.max(0, Math.min(map.epochs.length - 1, at + step))][0]);
  });
  maps.set(name, map);
  return map;
}

export function renderHeat() {
  const parent = document.getElementById("heat");
  const names = Object.keys(store.heat);
  if (names.join() !== [...maps.keys()].join()) {
    fill(parent);
    maps.clear();
  }
  if (!names.length) return fill(parent, el("p", { class: "empty" }, "Nothing has happened yet."));
  for (const name of names) {
    const map = maps.get(name) ?? make(name, parent);
    const [context, width] = prepare(map.canvas, HEIGHT);
    const epochs = (map.epochs = shownEpochs(name, width));
    if (!epochs.length) continue;
    const cells = epochs.at(-1)[1][mode][1].length;
    // One epoch that stands out must not make all others dark
    const tops = epochs.map(([, column]) => column[mode][0]).sort((a, b) => a - b);
    // In steps, so that the next epoch seldom has another scale: then only its column is painted
    const top = 2 ** (Math.ceil(4 * Math.log2(Math.max(1, tops[Math.floor(0.9 * (tops.length - 1))]))) / 4);
    context.imageSmoothingEnabled = false;
    context.drawImage(painted(map, epochs, cells, top), 0, 0, epochs.length, cells, 0, 0, width, HEIGHT);
    const wide = width / epochs.length, first = epochs[0][0];
    const slots = store.shown?.exchanges[name]?.slots ?? 1;
    const place = new Map(epochs.map(([epoch], at) => [epoch, at]));
    const dots = { "--waiting": new Path2D(), "--aside": new Path2D(), "--bad": new Path2D() };
    for (const one of store.decisions) {
      if (one.exchange !== name || !one.accepted || one.epoch < first || !place.has(one.epoch)) continue;
      const x = (place.get(one.epoch) + 0.5) * wide, y = Math.min(HEIGHT - 2, ((one.partition + 0.5) / slots) * HEIGHT);
      dots[TONES[one.what] ?? "--waiting"].rect(x - 1.6, y - 1.6, 3.2, 3.2);
    }
    for (const [tone, path] of Object.entries(dots)) { context.fillStyle = colour(tone); context.fill(path); }
    if (store.cursor !== null && place.has(store.cursor)) {
      context.strokeStyle = colour("--text");
      context.strokeRect(place.get(store.cursor) * wide, 0.5, Math.max(2, wide), HEIGHT - 1);
    }
    say(map.about, `epochs ${first} to ${epochs.at(-1)[0]} · most in one of ${cells} ranges: ${mode === "rows" ? `${count(tops.at(-1))} rows` : bytes(tops.at(-1))}`);
    set(map.canvas, "aria-label", `${mode === "rows" ? "Load" : "State"} of exchange ${name} by slot and time, ${map.about.textContent}. Arrow keys look at other epochs.`);
  }
  return null;
}

export function setUpHeat() {
  const choose = (name) => { mode = name; choices(document.getElementById("heat-modes"), MODES, mode, choose); renderHeat(); };
  choose(mode);
}
