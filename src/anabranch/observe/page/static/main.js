// Puts the page together: what is in sight is drawn, once a frame, when something has changed.

import { begin, follow, look, store, watch } from "./store.js";
import { clock, colour, el, fill, onResize, prepare, say, seconds } from "./format.js";
import { renderPlan } from "./plan.js";
import { renderShapes } from "./shapes.js";
import { renderStrips, setUpStrips } from "./strips.js";
import { renderHeat, setUpHeat } from "./heat.js";
import { renderCharts, setUpCharts, visible } from "./charts.js";
import { renderDecisions, renderNumbers, renderResults, renderSites, renderStreams, renderWarnings, setUpDecisions } from "./panels.js";
import { renderControl } from "./control.js";

window.anabranchStats = { bytes: 0, parse: 0, frames: 0, longest: 0, last: 0, views: {} };
const $ = (id) => document.getElementById(id);
const VIEWS = [
  ["numbers", null, renderNumbers], ["view-plan", "Plan", () => { renderPlan(); renderShapes(); }], ["view-map", "Partitions", renderStrips], ["view-heat", "Slots × time", renderHeat],
  ["view-time", "Charts", renderCharts], ["view-sites", "Sites", renderSites], ["view-decisions", "Decisions", renderDecisions], ["view-streams", "Streams", renderStreams],
  ["view-results", "Results", renderResults], ["view-warnings", "Warnings", renderWarnings], ["view-control", null, renderControl],
];
const inSight = new Set(), stale = new Set();
let asked = false, fresh = true;

// A frame draws as many views as there is time for; the next one goes on
const FRAME = 12;
function draw() {
  asked = false;
  const started = performance.now(), stats = window.anabranchStats;
  if (fresh) { fresh = false; renderTop(); }
  for (const [id, , render] of VIEWS) {
    if (!stale.has(id) || !(inSight.has(id) || id === "view-control")) continue;
    const began = performance.now();
    if (began - started > FRAME) { frame(); break; }
    stale.delete(id);
    render();
    stats.views[id] = Math.max(stats.views[id] ?? 0, performance.now() - began);
  }
  stats.last = performance.now() - started;
  stats.frames += 1;
  if (stats.frames > 3) stats.longest = Math.max(stats.longest, stats.last);
}

// A page that is not looked at draws when it is looked at again
function frame() {
  if (!asked) { asked = true; (document.hidden ? setTimeout : requestAnimationFrame)(draw, 200); }
}

function refresh() {
  VIEWS.forEach(([id]) => stale.add(id));
  fresh = true;
  frame();
}

const WORDS = { waiting: "Waiting for the first event", running: "Running", ended: "Ended", failed: "Failed", lost: "Server gone, trying again" };
function renderTop() {
  const { run, status } = store, state = store.connection === "lost" ? "lost" : status.state;
  if (run) {
    say($("run-name"), run.name);
    say($("run-place"), `${run.place} · ${status.sites} sites · Anabranch ${run.version}`);
    document.title = `${run.name} · Anabranch`;
  }
  const text = `${WORDS[state]}${status.epochs && state === "running" ? `, ${status.epochs} epochs` : ""}`;
  $("status").dataset.state = state;
  say($("status").lastElementChild, text);
  const notice = store.connection === "lost" ? "The page's server does not answer: the run may have ended, or its process. What is shown was so at last." : status.error ? `The run failed: ${status.error}` : "";
  $("notice").hidden = !notice;
  say($("notice"), notice);
  const series = visible(), range = $("scrubber"), last = series.length - 1;
  range.max = Math.max(0, last);
  const at = store.cursor === null ? last : series.findIndex((one) => one.epoch === store.cursor);
  if (at >= 0) range.value = at;
  const one = series[at];
  $("live").setAttribute("aria-pressed", String(store.cursor === null));
  $("moment").textContent = one ? `epoch ${one.epoch} · ${clock(one.at)}` : "no epoch yet";
  range.setAttribute("aria-valuetext", one ? `epoch ${one.epoch}, ${clock(one.at)}, ${seconds(one.seconds)}` : "no epoch yet");
  const [context, width] = prepare($("ticks"), 30);
  const place = new Map(series.map((some, index) => [some.epoch, index]));
  context.fillStyle = colour("--waiting");
  for (const epoch of store.ticks) if (place.has(epoch)) context.fillRect(8 + (place.get(epoch) / Math.max(1, last)) * (width - 16), 25, 2, 5);
}

const step = (by) => {
  const series = visible();
  const at = store.cursor === null ? series.length - 1 : series.findIndex((one) => one.epoch === store.cursor);
  const next = series[Math.max(0, Math.min(series.length - 1, at + by))];
  if (next) look(next.epoch);
};

function theme(name) {
  document.documentElement.dataset.theme = name;
  try { localStorage.setItem("theme", name); } catch { /* it is then forgotten */ }
  refresh();
}

async function start() {
  let known = null;
  try { known = localStorage.getItem("theme"); } catch { /* none is kept */ }
  theme(known ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
  fill($("views"), ...VIEWS.filter(([, label]) => label).map(([id, label]) => el("li", {}, el("a", { href: `#${id}` }, label))));
  setUpStrips(); setUpHeat(); setUpCharts(); setUpDecisions();
  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries) inSight[entry.isIntersecting ? "add" : "delete"](entry.target.id);
    if (entries.some((entry) => entry.isIntersecting)) frame();
  }, { rootMargin: "200px" });
  VIEWS.forEach(([id]) => observer.observe($(id)));
  $("live").addEventListener("click", () => look(store.cursor === null ? (visible().at(-1)?.epoch ?? null) : null));
  $("back").addEventListener("click", () => step(-1));
  $("forth").addEventListener("click", () => step(1));
  $("scrubber").addEventListener("input", (event) => { const one = visible()[Number(event.target.value)]; if (one) look(one.epoch); });
  $("theme").addEventListener("click", () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  addEventListener("keydown", (event) => {
    if (event.target.matches("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
    const act = { l: () => look(null), "[": () => step(-1), "]": () => step(1), t: () => $("theme").click() }[event.key];
    if (act) { event.preventDefault(); act(); }
  });
  addEventListener("resize", refresh);
  onResize(refresh);
  watch(refresh);
  try {
    await begin();
    follow();
  } catch (error) {
    store.connection = "lost";
    $("notice").hidden = false;
    $("notice").textContent = error.message;
  }
  refresh();
  document.documentElement.dataset.ready = "yes";
}

start();
