// The shapes that joins work in: a small tree for each, with the number of partitions that have it.

import { store } from "./store.js";
import { count, el, fill } from "./format.js";

const STEP = 26, LEVEL = 24, FOOT = 16, RECENT = 3;
let listed = null;

const read = (text) => { try { return JSON.parse(text.replaceAll("(", "[").replaceAll(")", "]")); } catch { return null; } };

// Inputs stand side by side at the foot; a join stands above what it puts together
function placed(part, leaves, lines) {
  if (!Array.isArray(part)) {
    leaves.push(part);
    return { x: (leaves.length - 0.5) * STEP, height: 0 };
  }
  const below = part.map((one) => placed(one, leaves, lines));
  const at = { x: below.reduce((sum, one) => sum + one.x, 0) / below.length, height: 1 + Math.max(...below.map((one) => one.height)) };
  for (const one of below) lines.push([at, one]);
  return at;
}

function tree(shape, inputs) {
  const leaves = [], lines = [], top = placed(read(shape), leaves, lines);
  const width = leaves.length * STEP, tall = 8 + top.height * LEVEL, y = (at) => tall - at.height * LEVEL;
  return el("svg", { width, height: tall + FOOT, viewBox: `0 0 ${width} ${tall + FOOT}`, "aria-hidden": "true" },
    ...lines.map(([above, below]) => el("path", { d: `M${above.x} ${y(above)}C${above.x} ${y(above) + 12} ${below.x} ${y(below) - 12} ${below.x} ${y(below)}` })),
    ...lines.map(([above]) => el("circle", { cx: above.x, cy: y(above), r: 4, class: above === top ? "" : "between" })),
    ...leaves.map((leaf, at) => el("text", { x: (at + 0.5) * STEP, y: tall + 13, "text-anchor": "middle" }, el("title", {}, inputs[leaf] ?? ""), String(leaf))));
}

export function renderShapes() {
  const parent = document.getElementById("shapes"), used = store.shown?.shapes ?? {};
  const joins = (store.run?.plan.subqueries ?? []).filter((one) => one.shaped?.length && used[one.name]);
  const now = store.shown?.epoch ?? 0;
  const changed = store.decisions.filter((one) => one.accepted && one.what === "replan" && one.epoch <= now && now - one.epoch <= RECENT);
  const these = JSON.stringify([joins.map((one) => [one.name, used[one.name]]), changed.map((one) => one.action)]);
  if (these === listed) return;
  listed = these;
  parent.hidden = !joins.length;
  fill(parent, ...joins.map((join) => el("figure", { class: "shapes" },
    el("figcaption", {}, el("b", {}, join.name), ` joins ${join.shaped.map((name, at) => `${at} ${name}`).join(", ")}`),
    ...Object.entries(used[join.name]).map(([shape, many]) => el("div", { class: changed.some((one) => one.action.includes(`run ${join.name} as ${shape} `)) ? "shape fresh" : "shape" },
      tree(shape, join.shaped), el("span", {}, el("code", {}, shape), ` on ${count(many)} partition${many === 1 ? "" : "s"}`))))));
}
