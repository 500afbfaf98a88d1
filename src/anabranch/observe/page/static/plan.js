// The plan as a river: streams on the left, results on the right, an arm as wide as what flows in it.

import { store } from "./store.js";
import { bytes, el, fill, short } from "./format.js";

const WIDTH = 226, HEIGHT = 58, ACROSS = 120, GAP = 22, TOP = 34;
// The plan shrinks to its panel as long as it can be read; from there on the panel scrolls
const SMALLEST = 0.85;

function laidOut(plan) {
  const column = new Map(), nodes = new Map();
  const add = (name, kind, of, at) => { nodes.set(name, { name, kind, of }); column.set(name, at); };
  plan.streams.forEach((one) => add(`s:${one.name}`, "stream", one, 0));
  const origin = (name) => (nodes.has(`q:${name}`) ? `q:${name}` : `s:${name}`);
  // Subqueries come after those they read; one stands right of all of these
  let last = 0;
  for (const one of plan.subqueries) {
    const at = 1 + Math.max(0, ...one.reads.map((name) => column.get(origin(name)) ?? 0));
    add(`q:${one.name}`, "subquery", one, at);
    last = Math.max(last, at);
  }
  plan.outputs.forEach((one) => add(`o:${one.query}`, "output", one, last + 1));
  const rows = [];
  for (const [name, at] of column) (rows[at] ??= []).push(name);
  const tallest = Math.max(...rows.map((some) => some?.length ?? 0));
  rows.forEach((some, at) => {
    const free = (tallest - some.length) * (HEIGHT + GAP) / 2;
    some.forEach((name, index) => Object.assign(nodes.get(name), { x: 12 + at * (WIDTH + ACROSS), y: TOP + free + index * (HEIGHT + GAP) }));
  });
  const edges = [];
  for (const node of nodes.values()) for (const name of node.of.reads ?? []) edges.push({ from: nodes.get(origin(name)), to: node });
  return { nodes: [...nodes.values()], edges, width: 24 + rows.length * (WIDTH + ACROSS) - ACROSS, height: TOP + tallest * (HEIGHT + GAP) };
}

function figures(node, shown) {
  if (!shown) return { rows: 0, rate: 0, state: "idle", busy: 0, line: "" };
  const per = shown.seconds || 1;
  if (node.kind === "stream") {
    const one = shown.streams.find((stream) => stream.name === node.of.name);
    return { out: one?.rows ?? 0, rate: (one?.rows ?? 0) / per, state: one?.rows ? "busy" : "idle", busy: one?.rows ? 1 : 0, line: `${short((one?.rows ?? 0) / per)} rows/s${one?.lateRows ? `, ${short(one.lateRows)} late` : ""}` };
  }
  if (node.kind === "output") {
    const rows = shown.results[node.of.query] ?? 0;
    return { out: rows, rate: rows / per, state: rows ? "busy" : "idle", busy: rows ? 1 : 0, line: `${short(rows / per)} rows/s` };
  }
  const one = shown.subqueries[node.of.name];
  if (!one) return { out: 0, rate: 0, state: "idle", busy: 0, line: "" };
  const busy = Math.min(1, one.busy / (per * Math.max(1, one.sites)));
  const waits = shown.waiting.some((hold) => hold.exchange === node.of.exchange);
  return { out: one.rowsOut, in: one.rowsIn, rate: one.rowsOut / per, busy, state: waits ? "waiting" : one.rowsIn ? "busy" : "idle", line: `${Math.round(busy * 100)}% busy · ${bytes(one.state)}${one.aside ? `, ${bytes(one.aside)} aside` : ""}` };
}

const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
let drawn = null, laid = null;

function draw() {
  const { plan } = store.run;
  laid = laidOut(plan);
  const svg = el("svg", { width: laid.width, height: laid.height, viewBox: `0 0 ${laid.width} ${laid.height}`, "aria-hidden": "true" });
  svg.style.minWidth = `${Math.round(laid.width * SMALLEST)}px`;
  const exchanges = new Map();
  for (const node of laid.nodes) if (node.kind === "subquery") exchanges.set(node.of.exchange, [...(exchanges.get(node.of.exchange) ?? []), node]);
  for (const [name, members] of exchanges) {
    if (members.length < 2) continue;
    const x = Math.min(...members.map((m) => m.x)) - 9, y = Math.min(...members.map((m) => m.y)) - 20;
    const right = Math.max(...members.map((m) => m.x)) + WIDTH + 9, bottom = Math.max(...members.map((m) => m.y)) + HEIGHT + 9;
    // A frame that had others in it would say what is not so
    const strangers = laid.nodes.some((node) => !members.includes(node) && node.x < right && node.x + WIDTH > x && node.y < bottom && node.y + HEIGHT > y);
    if (!strangers) svg.append(el("rect", { class: "frame", x, y, width: right - x, height: bottom - y, rx: 12 }), el("text", { class: "framed", x: x + 9, y: y + 13 }, `exchange ${name}`));
  }
  for (const edge of laid.edges) {
    const [x1, y1, x2, y2] = [edge.from.x + WIDTH, edge.from.y + HEIGHT / 2, edge.to.x, edge.to.y + HEIGHT / 2];
    const way = `M${x1} ${y1}C${x1 + 55} ${y1} ${x2 - 55} ${y2} ${x2} ${y2}`;
    edge.path = el("path", { d: way });
    edge.label = el("text", { x: (x1 + x2) / 2, y: (y1 + y2) / 2 - 9, "text-anchor": "middle" });
    edge.group = el("g", { class: "edge" }, edge.path, el("path", { d: way, class: "flow" }), edge.label);
    svg.append(edge.group);
  }
  for (const node of laid.nodes) {
    const title = node.kind === "output" ? node.of.query : node.of.name;
    const about = node.kind === "subquery" ? node.of.title : node.kind === "stream" ? `by ${node.of.ordered}` : node.of.sink;
    node.level = el("rect", { class: "level", x: node.x, y: node.y + HEIGHT - 5, width: 0, height: 5, rx: 2.5 });
    node.line = el("text", { class: "soft", x: node.x + 12, y: node.y + 46 });
    node.group = el("g", { class: "node" },
      el("title", {}, node.of.words ?? about ?? ""), el("rect", { x: node.x, y: node.y, width: WIDTH, height: HEIGHT, rx: 11 }), node.level,
      el("text", { x: node.x + 12, y: node.y + 18 }, cut(title, 28)), el("text", { class: "soft", x: node.x + 12, y: node.y + 32 }, cut(about ?? "", 36)), node.line);
    svg.append(node.group);
  }
  fill(document.getElementById("plan"), svg);
  drawn = store.run;
}

export function renderPlan() {
  if (!store.run) return;
  if (drawn !== store.run) draw();
  const shown = store.shown, per = shown?.seconds || 1;
  const told = [];
  for (const node of laid.nodes) {
    const now = (node.now = figures(node, shown));
    node.group.dataset.state = now.state;
    node.level.setAttribute("width", Math.round(WIDTH * now.busy));
    node.line.textContent = now.line;
    told.push(`${node.kind} ${node.of.name ?? node.of.query}: ${now.state}, ${now.line}.`);
  }
  for (const edge of laid.edges) {
    const single = edge.to.kind === "subquery" && (edge.to.of.reads?.length ?? 0) === 1;
    const rows = (edge.to.kind === "output" ? edge.to.now.out : single ? edge.to.now.in : edge.from.now.out) ?? 0;
    edge.group.classList.toggle("still", !rows);
    edge.path.setAttribute("stroke-width", rows ? Math.max(1.5, Math.min(16, Math.log10(rows + 1) * 2.2)) : 1);
    edge.label.textContent = rows ? `${short(rows / per)}/s` : "";
  }
  document.getElementById("plan-text").textContent = told.join(" ");
}
