// What stands beside the drawings: numbers, sites, decisions, streams, results, warnings.

import { look, olderDecisions, results, store } from "./store.js";
import { bytes, choices, clock, colour, count, el, fill, hideTip, prepare, say, seconds, set, short, showTip, siteColour, isDark } from "./format.js";
import { greatest, line, visible } from "./charts.js";

const $ = (id) => document.getElementById(id);
const NUMBERS = [
  ["rows/s", (one) => one.rate, short], ["an epoch", (one) => one.seconds, seconds], ["results", (one) => one.results, count],
  ["state", (one) => one.state, bytes], ["put aside", (one) => one.aside, bytes], ["imbalance", (one) => one.imbalance, (v) => (v == null ? "–" : `${v.toFixed(2)}×`)],
  ["event delay", (one) => Math.max(...Object.values(one.delay).filter((v) => v != null), 0), short], ["backlog", (one) => one.backlog, short],
];

let cards = null;
function numberCards() {
  cards = NUMBERS.map(([label]) => {
    const path = el("path"), value = el("b");
    const card = el("div", { class: "number" }, el("span", {}, label), value, el("svg", { viewBox: "0 -2 120 28", preserveAspectRatio: "none", "aria-hidden": "true" }, path));
    return { card, value, path };
  });
  fill($("numbers"), ...cards.map(({ card }) => card));
}

export function renderNumbers() {
  if (!cards) numberCards();
  const series = visible(), recent = series.slice(-120);
  const now = store.cursor === null ? series.at(-1) : series.find((one) => one.epoch === store.cursor);
  NUMBERS.forEach(([, of, words], at) => {
    const points = recent.map(of);
    say(cards[at].value, now ? words(of(now)) : "–");
    cards[at].path.setAttribute("d", line(points, 120, 24, greatest([points])));
  });
}

const FEW = 16;
export function renderSites() {
  const shown = store.shown, parent = $("sites");
  if (!shown) return fill(parent, el("p", { class: "empty" }, "No site has worked yet."));
  const sites = [...shown.sites].sort((a, b) => a[0] - b[0]), gone = new Set(store.status.gone);
  const most = Math.max(1, ...sites.map((site) => Math.max(site[6] ?? 0, (site[4] ?? 0) + (site[5] ?? 0))));
  const text = `${sites.length} sites; busiest: ${[...sites].sort((a, b) => b[1] - a[1]).slice(0, 3).map((site) => `site ${site[0]} with ${seconds(site[1])}`).join(", ")}${gone.size ? `; gone: ${[...gone].join(", ")}` : ""}.`;
  if (sites.length > FEW) return manySites(parent, sites, shown, most, text);
  const longest = Math.max(shown.seconds, ...sites.map((site) => site[1]));
  const body = sites.map(([site, busy, rows, out, resident, aside, limit, executor]) => {
    const bar = (share, kind) => { const part = el("i", kind ? { class: kind } : {}); part.style.width = `${(100 * share).toFixed(1)}%`; return part; };
    const memory = el("div", { class: "bar" });
    // A budget far above what is kept would make the bar empty
    const span = Math.min(most, Math.max(1, ...sites.map((one) => ((one[4] ?? 0) + (one[5] ?? 0)) * 1.25)));
    const rest = bar((aside ?? 0) / span, "aside");
    rest.style.left = `${(100 * (resident ?? 0)) / span}%`;
    memory.append(bar((resident ?? 0) / span), rest);
    if (limit && limit <= span) { const mark = el("u"); mark.style.left = `calc(${(100 * limit) / span}% - 2px)`; memory.append(mark); }
    const dot = el("span", { class: "key" }, `site ${site}${gone.has(site) ? " (gone)" : ""}`);
    dot.style.setProperty("--c", siteColour(site, isDark()));
    return el("tr", { title: executor || null }, el("td", {}, dot), el("td", {}, el("div", { class: "bar" }, bar(busy / longest))), el("td", { class: "num" }, `${Math.round((100 * busy) / shown.seconds)}%`),
      el("td", { class: "num" }, short(rows)), el("td", { class: "num" }, short(out)), el("td", {}, memory), el("td", { class: "num" }, bytes(resident)), el("td", { class: "num" }, limit ? bytes(limit) : "none"));
  });
  const heads = ["site", "busy", "", "rows in", "out", "memory", "", "budget"];
  return fill(parent, el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of sites" }, el("table", {}, el("thead", {}, el("tr", {}, ...heads.map((head) => (head ? el("th", { scope: "col" }, head) : el("td"))))), el("tbody", {}, ...body))), el("p", { class: "sr" }, text));
}

function manySites(parent, sites, shown, most, text) {
  let canvas = parent.querySelector("canvas");
  if (!canvas) {
    canvas = el("canvas", { class: "strip", role: "img", tabindex: "0" });
    fill(parent, canvas, el("p", { class: "readout" }));
    canvas.addEventListener("pointermove", (event) => {
      const all = [...store.shown.sites].sort((a, b) => a[0] - b[0]);
      const one = all[Math.min(all.length - 1, Math.floor((event.offsetX / canvas.clientWidth) * all.length))];
      showTip(`site ${one[0]} ${one[7]}\nbusy ${seconds(one[1])}, ${count(one[2])} rows in\n${bytes(one[4])} in memory, ${bytes(one[5])} aside, budget ${one[6] ? bytes(one[6]) : "none"}`, event.clientX, event.clientY);
    });
    canvas.addEventListener("pointerleave", hideTip);
  }
  const [context, width] = prepare(canvas, 190), wide = width / sites.length;
  const longest = Math.max(1e-9, ...sites.map((site) => site[1])), span = Math.max(1, ...sites.map((site) => (site[4] ?? 0) + (site[5] ?? 0)));
  const thick = Math.max(1, wide - 1), kept = (site) => (86 * (site[4] ?? 0)) / span;
  // All columns of one colour after another
  const put = (tone, foot, height) => {
    context.fillStyle = colour(tone);
    sites.forEach((site, at) => context.fillRect(at * wide, foot(site) - height(site), thick, height(site)));
  };
  put("--busy", () => 90, (site) => (86 * site[1]) / longest);
  put("--river", () => 188, kept);
  put("--aside", (site) => 188 - kept(site), (site) => (86 * (site[5] ?? 0)) / span);
  put("--limit", (site) => 188 - (86 * (site[6] ?? 0)) / span, (site) => (site[6] && site[6] <= span ? 2 : 0));
  set(canvas, "aria-label", text);
  say(parent.querySelector(".readout"), `${text} Upper columns: busy time. Lower ones: memory.`);
  return null;
}

const KINDS = [["made", "carried out"], ["all", "all"], ["refused", "refused"]];
let kind = "made", most = 60, listed = null;
export function setUpDecisions() {
  const choose = (name) => { kind = name; choices($("decision-modes"), KINDS, kind, choose); renderDecisions(); };
  choose(kind);
  $("older").addEventListener("click", async () => { most += 300; if (store.decisions.length < store.decided) await olderDecisions(); else renderDecisions(); });
}

export function renderDecisions() {
  const wanted = store.decisions.filter((one) => kind === "all" || one.accepted === (kind === "made"));
  const shown = wanted.slice(-most).reverse();
  $("older").hidden = shown.length >= wanted.length && store.decisions.length >= store.decided;
  const these = shown.map((one) => `${one.run} ${one.number} ${one.version}`).join();
  if (these === listed) return;
  listed = these;
  const who = { hand: "by hand", sites: "sites came or went", controller: "by itself" };
  if (!shown.length) fill($("decisions"), el("li", { class: "empty" }, "None so far."));
  else fill($("decisions"), ...shown.map((one) => {
    const effect = one.cost != null ? `a row costs ${one.cost.toFixed(2)} times as much since` : one.givenUp ? `given up: ${one.givenUp}` : one.before != null ? `imbalance ${one.before.toFixed(2)}×${one.after != null ? ` → ${one.after.toFixed(2)}×` : ", effect not measured yet"}` : "";
    return el("li", { class: one.accepted ? "" : "refused" },
      el("div", { class: "what" }, el("span", { class: "tag" }, one.accepted ? one.what : `${one.what} refused`), el("span", {}, one.action),
        el("button", { type: "button", class: "link", "aria-label": `Show epoch ${one.epoch} on the charts`, onclick: () => look(one.epoch) }, `epoch ${one.epoch}`)),
      el("small", {}, [one.accepted ? one.cause : one.reason, who[one.origin] ?? one.origin, one.bytes ? bytes(one.bytes) : "", effect].filter(Boolean).join(" · ")));
  }));
}

const table = (heads, rows) => el("table", {}, el("thead", {}, el("tr", {}, ...heads.map((head) => el("th", { scope: "col" }, head)))), el("tbody", {}, ...rows));
const moment = (time) => (time == null ? "none yet" : String(time).replace("T", " ").slice(0, 23));

export function renderStreams() {
  const streams = store.shown?.streams ?? [];
  if (!streams.length) return fill($("streams"), el("p", { class: "empty" }, "Nothing was read yet."));
  return fill($("streams"), table(["stream", "rows/s", "rows", "late", "bad", "backlog", "newest", "watermark"], streams.map((one) => el("tr", { title: one.bad.join("\n") || null },
    el("td", {}, one.name), el("td", {}, short(one.rows / store.shown.seconds)), el("td", {}, count(one.rowsTotal)), el("td", {}, count(one.lateRowsTotal)),
    el("td", {}, count(one.badRowsTotal + one.badFilesTotal)), el("td", {}, short(one.backlog)), el("td", {}, moment(one.newest)), el("td", {}, moment(one.watermark))))));
}

let query = null, asked = 0, fetchedFor = "";
export async function renderResults() {
  const outputs = store.run?.plan.outputs ?? [];
  if (!outputs.length) return;
  query ??= outputs[0].query;
  const label = `${outputs.map((one) => one.query).join()}|${query}`;
  if (fetchedFor !== label) {
    fetchedFor = label;
    asked = 0;
    choices($("queries"), outputs.map((one) => [one.query, one.query]), query, (name) => { query = name; renderResults(); });
  }
  if (performance.now() - asked < 1500) return;
  asked = performance.now();
  const found = await results(query), output = outputs.find((one) => one.query === query);
  const total = store.shown?.results[query] ?? 0;
  const about = el("p", { class: "legend" }, `${count(total)} rows in this epoch → ${output.sink}`);
  if (!found?.rows.length) { fill($("results"), about, el("p", { class: "empty" }, found === null ? "The newest results cannot be shown from this sink." : "No results yet.")); return; }
  fill($("results"), about, table(found.columns, [...found.rows].reverse().map((row) => el("tr", {}, ...row.map((cell) => el("td", {}, cell))))));
}

let warned = null;
export function renderWarnings() {
  const shown = store.warnings.slice(-40).reverse(), these = shown.map((one) => `${one.version} ${one.text}`).join();
  if (these === warned) return;
  warned = these;
  fill($("warnings"), ...(shown.length ? shown.map((one) => el("li", {}, one.text, el("small", {}, `epoch ${one.epoch}, ${clock(one.at)}`))) : [el("li", { class: "empty" }, "None.")]));
}
