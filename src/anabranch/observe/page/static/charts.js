// Figures over time, as lines; a click looks at that epoch, ticks below are decisions.

import { look, store } from "./store.js";
import { bytes, clock, el, fill, hideTip, seconds, short, showTip } from "./format.js";

const W = 600, H = 120;
const TONES = ["--river", "--waiting", "--aside", "--good", "--bad"];
const delays = () => [...new Set(store.series.slice(-50).flatMap((one) => Object.keys(one.delay)))].slice(0, 5);
const CHARTS = [
  ["Throughput", (v) => `${short(v)} rows/s`, () => [["rows in", (one) => one.rate], ["results", (one) => one.results / one.seconds]]],
  ["Epoch time", seconds, () => [["whole epoch", (one) => one.seconds], ["tasks", (one) => one.tasks], ["commit", (one) => one.commit]]],
  ["Watermark delay", (v) => short(v), () => delays().map((name) => [name, (one) => one.delay[name]])],
  ["State", bytes, () => [["all", (one) => one.state], ["put aside", (one) => one.aside]]],
  ["Imbalance of sites", (v) => `${v.toFixed(2)}×`, () => [["busiest / mean", (one) => one.imbalance]]],
  ["Rows that wait, late, bad", short, () => [["wait", (one) => one.waiting], ["late", (one) => one.late], ["bad", (one) => one.bad]]],
];
const made = [];

export const visible = () => store.series.slice(-600);

export function line(points, width, height, top) {
  let way = "", pen = "M";
  points.forEach((point, at) => {
    if (point == null) { pen = "M"; return; }
    way += `${pen}${((at / Math.max(1, points.length - 1)) * width).toFixed(1)} ${(height - (point / top) * height).toFixed(1)}`;
    pen = "L";
  });
  return way;
}

function nearest(event, box) {
  const series = visible(), share = (event.clientX - box.left) / box.width;
  return series[Math.max(0, Math.min(series.length - 1, Math.round(share * (series.length - 1))))];
}

export function setUpCharts() {
  fill(document.getElementById("charts"), ...CHARTS.map(([title, words, lines]) => {
    const svg = el("svg", { viewBox: `0 -6 ${W} ${H + 12}`, preserveAspectRatio: "none", role: "img" });
    const about = el("small"), legend = el("p", { class: "legend" });
    svg.addEventListener("pointermove", (event) => {
      const one = nearest(event, svg.getBoundingClientRect());
      if (one) showTip(`epoch ${one.epoch}, ${clock(one.at)}\n${lines().map(([name, of]) => `${name}: ${of(one) == null ? "–" : words(of(one))}`).join("\n")}`, event.clientX, event.clientY);
    });
    svg.addEventListener("pointerleave", hideTip);
    svg.addEventListener("click", (event) => { const one = nearest(event, svg.getBoundingClientRect()); if (one) look(one.epoch); });
    made.push({ title, words, lines, svg, about, legend });
    return el("div", { class: "chart" }, el("h3", {}, title, about), svg, legend);
  }));
}

export function renderCharts() {
  const series = visible();
  for (const { title, words, lines, svg, about, legend } of made) {
    const found = lines().map(([name, of]) => [name, series.map(of)]);
    const top = Math.max(1e-9, ...found.flatMap(([, points]) => points.filter((point) => point != null)));
    const parts = [0, 0.5, 1].map((share) => el("line", { class: "grid", x1: 0, x2: W, y1: H * share, y2: H * share }));
    found.forEach(([, points], at) => {
      const path = el("path", { d: line(points, W, H, top) });
      path.style.stroke = `var(${TONES[at]})`;
      parts.push(path);
    });
    if (series.length > 1) {
      const first = series[0].epoch, across = Math.max(1, series.length - 1);
      const place = new Map(series.map((one, at) => [one.epoch, at]));
      for (const epoch of store.ticks) {
        if (epoch < first || !place.has(epoch)) continue;
        const x = (place.get(epoch) / across) * W;
        parts.push(el("line", { class: "decision", x1: x, x2: x, y1: H, y2: H + 6 }));
      }
      if (store.cursor !== null && place.has(store.cursor)) {
        const x = (place.get(store.cursor) / across) * W;
        parts.push(el("line", { class: "now", x1: x, x2: x, y1: -6, y2: H + 6 }));
      }
    }
    fill(svg, ...parts);
    const now = series.findLast((one) => store.cursor === null || one.epoch <= store.cursor);
    about.textContent = top > 1e-6 ? `top ${words(top)}` : "";
    fill(legend, ...found.map(([name], at) => {
      const of = lines()[at][1], last = now ? of(now) : null;
      const key = el("span", { class: "key" }, `${name} ${last == null ? "–" : words(last)}`);
      key.style.setProperty("--c", `var(${TONES[at]})`);
      return key;
    }));
    svg.setAttribute("aria-label", `${title} over ${series.length} epochs: ${legend.textContent}; ${about.textContent}.`);
  }
}
