// Slots x time: a column for each epoch, a row for each range of slots; decisions as dots on it.

import { look, store, value } from "./store.js";
import { bytes, choices, colour, count, el, fill, hideTip, isDark, prepare, ramp, showTip } from "./format.js";

const MODES = [["rows", "load"], ["size", "state"]];
const HEIGHT = 150;
let mode = "rows";
const maps = new Map();
const scratch = document.createElement("canvas");

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
  const shades = ramp(isDark());
  for (const name of names) {
    const map = maps.get(name) ?? make(name, parent);
    const [context, width] = prepare(map.canvas, HEIGHT);
    const epochs = (map.epochs = shownEpochs(name, width));
    if (!epochs.length) continue;
    const cells = epochs.at(-1)[1][mode][1].length;
    // One epoch that stands out must not make all others dark
    const tops = epochs.map(([, column]) => column[mode][0]).sort((a, b) => a - b);
    const top = Math.max(1, tops[Math.floor(0.9 * (tops.length - 1))]);
    scratch.width = epochs.length;
    scratch.height = cells;
    const image = new ImageData(epochs.length, cells);
    epochs.forEach(([, column], x) => {
      const [own, bytes_] = column[mode], scale = own / top / 255;
      for (let y = 0; y < Math.min(cells, bytes_.length); y++) {
        const [r, g, b] = shades[Math.min(255, Math.round(bytes_[y] * bytes_[y] * scale))], at = 4 * (y * epochs.length + x);
        image.data[at] = r; image.data[at + 1] = g; image.data[at + 2] = b; image.data[at + 3] = 255;
      }
    });
    scratch.getContext("2d").putImageData(image, 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(scratch, 0, 0, epochs.length, cells, 0, 0, width, HEIGHT);
    const wide = width / epochs.length, first = epochs[0][0];
    const slots = store.shown?.exchanges[name]?.slots ?? 1;
    const place = new Map(epochs.map(([epoch], at) => [epoch, at]));
    for (const one of store.decisions) {
      if (one.exchange !== name || !one.accepted || one.epoch < first || !place.has(one.epoch)) continue;
      context.fillStyle = colour(one.what === "spill" || one.what === "cleanup" ? "--aside" : "--waiting");
      context.beginPath();
      context.arc((place.get(one.epoch) + 0.5) * wide, Math.min(HEIGHT - 2, ((one.partition + 0.5) / slots) * HEIGHT), 1.8, 0, 7);
      context.fill();
    }
    if (store.cursor !== null && place.has(store.cursor)) {
      context.strokeStyle = colour("--text");
      context.strokeRect(place.get(store.cursor) * wide, 0.5, Math.max(2, wide), HEIGHT - 1);
    }
    map.about.textContent = `epochs ${first} to ${epochs.at(-1)[0]} · most in one of ${cells} ranges: ${mode === "rows" ? `${count(tops.at(-1))} rows` : bytes(tops.at(-1))}`;
    map.canvas.setAttribute("aria-label", `${mode === "rows" ? "Load" : "State"} of exchange ${name} by slot and time, ${map.about.textContent}. Arrow keys look at other epochs.`);
  }
  return null;
}

export function setUpHeat() {
  const choose = (name) => { mode = name; choices(document.getElementById("heat-modes"), MODES, mode, choose); renderHeat(); };
  choose(mode);
}
