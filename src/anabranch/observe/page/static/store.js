// What the page knows of the run: fetched once, then kept up by a stream of messages.

const MOST = 2000;
const KEPT_DETAILS = 60;

export const store = {
  run: null, control: false, live: false, version: -1, status: { state: "waiting" }, series: [], heat: {},
  decisions: [], decided: 0, ticks: new Set(), warnings: [], commands: [], newest: null, cursor: null, shown: null, connection: "connecting",
};
const details = new Map();
const watchers = [];
export const watch = (function_) => watchers.push(function_);
const changed = (what) => watchers.forEach((function_) => function_(what));

function bytesOf(text) {
  const raw = atob(text);
  const found = new Uint8Array(raw.length);
  for (let at = 0; at < raw.length; at++) found[at] = raw.charCodeAt(at);
  return found;
}

async function unpacked(exchange) {
  const stream = new Blob([bytesOf(exchange.data)]).stream().pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(stream).arrayBuffer();
  const count = exchange.count;
  const columns = { starts: new Uint16Array(buffer.slice(0, 2 * count)), sites: new Uint16Array(buffer.slice(2 * count, 4 * count)) };
  ["rows", "rows_out", "size", "aside", "marks"].forEach((name, index) => {
    columns[name] = new Uint8Array(buffer, (4 + index) * count, count);
  });
  return { ...exchange, ...columns, data: null };
}

async function decoded(detail) {
  const names = Object.keys(detail.exchanges);
  const found = await Promise.all(names.map((name) => unpacked(detail.exchanges[name])));
  return { ...detail, exchanges: Object.fromEntries(names.map((name, at) => [name, found[at]])) };
}

export const value = (byte, top) => (byte / 255) ** 2 * top;

function keep(detail) {
  details.set(detail.epoch, detail);
  if (details.size > KEPT_DETAILS) details.delete(details.keys().next().value);
}

async function take(message) {
  store.version = message.version;
  store.status = message.status;
  if (message.series.length) {
    const first = message.series[0].epoch;
    store.series = [...store.series.filter((one) => one.epoch < first), ...message.series].slice(-MOST);
  }
  for (const [name, columns] of Object.entries(message.heat)) {
    const known = (store.heat[name] ??= new Map()), first = columns[0]?.[0];
    // Where a run goes on before the newest epoch, what came later did not happen
    for (const epoch of known.keys()) if (epoch >= first) known.delete(epoch);
    for (const [epoch, rows, size] of columns) known.set(epoch, { rows: [rows[0], bytesOf(rows[1])], size: [size[0], bytesOf(size[1])] });
    while (known.size > MOST) known.delete(known.keys().next().value);
  }
  for (const one of message.decisions) {
    const at = store.decisions.findLastIndex((known) => known.number === one.number && known.run === one.run);
    if (at >= 0) store.decisions[at] = one;
    else store.decisions.push(one);
  }
  store.decided = message.decided;
  message.ticks.forEach((epoch) => store.ticks.add(epoch));
  if (message.commands) store.commands = message.commands;
  store.warnings = [...store.warnings, ...message.warnings].slice(-200);
  if (message.detail) {
    store.newest = await decoded(message.detail);
    keep(store.newest);
  }
  if (store.cursor === null) store.shown = store.newest;
  changed("news");
}

export async function begin() {
  const answer = await fetch("/api/state");
  if (!answer.ok) throw new Error(await answer.text());
  const whole = await answer.json();
  Object.assign(store, { run: whole.run, control: whole.control, live: whole.live, series: [], heat: {}, decisions: [], ticks: new Set(), warnings: [] });
  await take(whole);
}

export function follow() {
  const source = new EventSource(`/api/stream?after=${store.version}`);
  let queue = Promise.resolve();
  source.onopen = () => { store.connection = "open"; changed("connection"); };
  source.onmessage = (event) => {
    const started = performance.now();
    const message = JSON.parse(event.data);
    window.anabranchStats.bytes += event.data.length;
    // The first event of a run, or a run that goes on from the same checkpoint: its plan may be another one
    const fresh = store.run === null && message.status.state !== "waiting";
    queue = queue.then(() => (fresh ? begin() : take(message))).catch(() => {});
    window.anabranchStats.parse = performance.now() - started;
  };
  source.onerror = () => {
    store.connection = "lost";
    changed("connection");
    source.close();
    setTimeout(again, 2000);
  };
}

async function again() {
  try {
    await begin();
    follow();
  } catch {
    setTimeout(again, 3000);
  }
}

// What an address tells; nothing if the server is gone, which the stream notices and says
async function gotten(path) {
  try {
    const answer = await fetch(path);
    return answer.ok ? await answer.json() : null;
  } catch {
    return null;
  }
}

export async function look(epoch) {
  store.cursor = epoch;
  if (epoch === null) {
    store.shown = store.newest;
    changed("cursor");
    return;
  }
  changed("cursor");
  let found = details.get(epoch);
  if (!found) {
    const told = await gotten(`/api/epoch/${epoch}`);
    if (told === null) return;
    found = await decoded(told);
    keep(found);
  }
  if (store.cursor === epoch) {
    store.shown = found;
    changed("cursor");
  }
}

export async function olderDecisions() {
  const oldest = store.decisions[0]?.version ?? 2 ** 52;
  const found = (await gotten(`/api/decisions?before=${oldest}&count=300`)) ?? [];
  store.decisions = [...found, ...store.decisions];
  changed("news");
  return found.length;
}

export async function ask(path, body) {
  const answer = await fetch(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  const text = await answer.text();
  let told = {};
  try { told = JSON.parse(text); } catch { told = { error: text }; }
  if (!answer.ok) throw new Error(told?.error ?? text);
  return told;
}

export const results = (query) => gotten(`/api/results/${encodeURIComponent(query)}`);
