// Figures over time, as lines; a click looks at that epoch, ticks below are decisions.

import { look, store } from "./store.js";
import { bytes, clock, el, fill, hideTip, say, seconds, set, short, showTip } from "./format.js";

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

const tenth = (number) => Math.round(number * 10) / 10;

export function line(points, width, height, top) {
  const wide = width / Math.max(1, points.length - 1), way = [];
  let pen = "M";
  points.forEach((point, at) => {
    if (point == null) { pen = "M"; return; }
    way.push(pen, tenth(at * wide), " ", tenth(height - (point / top) * height));
    pen = "L";
  });
  return way.join("");
}

export function greatest(lists) {
  let top = 1e-9;
  for (const points of lists) for (const point of points) if (point > top) top = point;
  return top;
}

function nearest(event, box) {
  const series = visible(), share = (event.clientX - box.left) / box.width;
  return series[Math.max(0, Math.min(series.length - 1, Math.round(share * (series.length - 1))))];
}

export function setUpCharts() {
  fill(document.getElementById("charts"), ...CHARTS.map(([title, words, lines]) => {
    const svg = el("svg", { viewBox: `0 -6 ${W} ${H + 12}`, preserveAspectRatio: "none", role: "img", "aria-label": title });
    const about = el("small"), legend = el("p", { class: "legend" });
    svg.addEventListener("pointermove", (event) => {
      const one = nearest(event, svg.getBoundingClientRect());
      if (one) showTip(`epoch ${one.epoch}, ${clock(one.at)}\n${lines().map(([name, of]) => `${name}: ${of(one) == null ? "–" : words(of(one))}`).join("\n")}`, event.clientX, event.clientY);
    });
    svg.addEventListener("pointerleave", hideTip);
    svg.addEventListener("click", (event) => { const one = nearest(event, svg.getBoundingClientRect()); if (one) look(one.epoch); });
    const ticks = el("path", { class: "decision" }), now = el("path", { class: "now" });
    fill(svg, ...[0, 0.5, 1].map((share) => el("line", { class: "grid", x1: 0, x2: W, y1: H * share, y2: H * share })), ticks, now);
    made.push({ title, words, lines, svg, about, legend, ticks, now, paths: [], keys: [] });
    return el("div", { class: "chart" }, el("h3", {}, title, about), svg, legend);
  }));
}

// A line and its words, made when they are needed first: from then on only what has changed is set
function fit(chart, many) {
  while (chart.paths.length < many) {
    const tone = `var(${TONES[chart.paths.length]})`, path = el("path"), key = el("span", { class: "key" });
    path.style.stroke = tone;
    key.style.setProperty("--c", tone);
    chart.paths.push(path); chart.keys.push(key);
    chart.svg.append(path); chart.legend.append(key);
  }
  chart.paths.slice(many).forEach((path) => set(path, "d", ""));
  chart.keys.forEach((key, at) => { key.hidden = at >= many; });
}

// Where things are decided, and what is looked at: the same on all charts
function marks(series) {
  const across = Math.max(1, series.length - 1), place = new Map(series.map((one, at) => [one.epoch, tenth((at / across) * W)]));
  const ticks = [];
  if (series.length > 1) for (const epoch of store.ticks) if (place.has(epoch)) ticks.push(`M${place.get(epoch)} ${H}v6`);
  const at = store.cursor === null || series.length < 2 ? undefined : place.get(store.cursor);
  return [ticks.join(""), at === undefined ? "" : `M${at} -6V${H + 6}`];
}

export function renderCharts() {
  const series = visible(), [ticks, now] = marks(series);
  const shown = store.cursor === null ? series.at(-1) : series.findLast((one) => one.epoch <= store.cursor);
  for (const chart of made) {
    const { title, words, svg, about } = chart, lines = chart.lines();
    const found = lines.map(([, of]) => series.map(of)), top = greatest(found);
    fit(chart, lines.length);
    lines.forEach(([name, of], at) => {
      const last = shown ? of(shown) : null;
      chart.paths[at].setAttribute("d", line(found[at], W, H, top));
      say(chart.keys[at], `${name} ${last == null ? "–" : words(last)}`);
    });
    set(chart.ticks, "d", ticks);
    set(chart.now, "d", now);
    say(about, top > 1e-6 ? `top ${words(top)}` : "");
    set(svg, "aria-label", `${title} over ${series.length} epochs: ${chart.keys.slice(0, lines.length).map((key) => key.textContent).join("")}; ${about.textContent}.`);
  }
}
