// Commands by hand: tried on paper first, done or cancelled after.

import { ask, store } from "./store.js";
import { clock, el, fill } from "./format.js";

const COMMANDS = {
  move: ["Move", ["subquery", "partition", "site"]], pin: ["Pin", ["subquery", "partition", "site"]], unpin: ["Unpin", ["subquery", "partition"]],
  pause: ["Pause", ["subquery", "partition"]], resume: ["Resume", ["subquery", "partition"]], spill: ["Put aside", ["subquery", "partition"]],
  clean_up: ["Bring back", ["subquery", "partition"]], replan: ["Another join shape", ["subquery", "shape", "partition"]], rebalance: ["Rebalance", []], set_sites: ["Number of sites", ["sites"]],
};
const TEXTS = ["subquery", "shape"];
let made = false;

// The flat one, and trees that take one input after another
function shapes(inputs) {
  const all = Array.from({ length: inputs }, (_, at) => at), trees = [`(${all.join()})`];
  for (const one of all) for (const other of all.slice(one + 1)) trees.push(all.filter((at) => at !== one && at !== other).reduce((tree, at) => `(${tree},${at})`, `(${one},${other})`));
  return trees;
}

export function setUpControl() {
  if (made || !store.control || !store.run) return;
  made = true;
  document.getElementById("view-control").hidden = false;
  const shaped = store.run.plan.subqueries.filter((one) => one.shaped?.length), names = store.run.plan.subqueries.map((one) => one.name);
  const which = el("select", { name: "command" }, ...Object.entries(COMMANDS).filter(([name]) => name !== "replan" || shaped.length).map(([name, [label]]) => el("option", { value: name }, label)));
  const fields = {
    subquery: el("select", { name: "subquery" }),
    shape: el("input", { name: "shape", placeholder: "((0,1),2)", maxlength: "60", required: true, list: "known-shapes", autocomplete: "off" }),
    partition: el("input", { type: "number", name: "partition", min: "0", value: "0", required: true }),
    site: el("input", { type: "number", name: "site", min: "0", value: "0", required: true }),
    sites: el("input", { type: "number", name: "sites", min: "1", value: String(store.status.sites), required: true }),
  };
  const labels = { subquery: "Subquery", shape: "Shape", partition: "Partition (first slot)", site: "To site", sites: "Sites" };
  const listed = el("datalist", { id: "known-shapes" });
  const wrapped = Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, el("label", {}, labels[name], field)]));
  const answer = el("div", { "aria-live": "polite", id: "answer" });
  const fit = () => {
    for (const [name, label] of Object.entries(wrapped)) { const used = COMMANDS[which.value][1].includes(name); label.hidden = !used; fields[name].disabled = !used; }
    const replan = which.value === "replan", some = replan ? shaped.map((one) => one.name) : names;
    if ([...fields.subquery.options].map((one) => one.value).join() !== some.join()) fill(fields.subquery, ...some.map((name) => el("option", { value: name }, name)));
    // A shape is for all partitions unless one is given
    fields.partition.required = !replan;
    fields.partition.placeholder = replan ? "all" : "";
    if (replan === (fields.partition.value === "0")) fields.partition.value = replan ? "" : "0";
    fill(listed, ...(replan ? shapes(shaped.find((one) => one.name === fields.subquery.value).shaped.length) : []).map((shape) => el("option", { value: shape })));
  };
  which.addEventListener("change", fit);
  fields.subquery.addEventListener("change", fit);
  const say = (...parts) => fill(answer, el("div", { class: "effect" }, ...parts));
  const form = el("form", { onsubmit: async (event) => {
    event.preventDefault();
    const names = COMMANDS[which.value][1];
    const given = Object.fromEntries(names.map((name) => [name, TEXTS.includes(name) ? fields[name].value : fields[name].value === "" ? null : Number(fields[name].value)]));
    try {
      const { ticket, effect } = await ask("/api/try", { command: which.value, arguments: given });
      const done = async (path, text) => { try { await ask(path, { ticket }); say(text); } catch (error) { say(`It was refused: ${error.message}`); } };
      say(effect, el("div", {}, el("button", { type: "button", class: "go", id: "do", onclick: () => done("/api/do", "Done: it holds from the next epoch on.") }, "Do it"),
        el("button", { type: "button", class: "quiet", id: "cancel", onclick: () => done("/api/cancel", "Nothing was done.") }, "Cancel")));
    } catch (error) { say(`That cannot be done: ${error.message}`); }
  } }, el("label", {}, "Command", which), ...Object.values(wrapped), listed, el("button", { class: "go", id: "try" }, "Try on paper"));
  fill(document.getElementById("control"), form, answer, el("ol", { class: "list", id: "commands" }));
  fit();
}

export function renderControl() {
  setUpControl();
  const list = document.getElementById("commands");
  if (list) fill(list, ...[...store.commands].reverse().map((one) => el("li", {}, `${one.command} ${Object.values(one.arguments).join(" ")}`, el("small", {}, `${one.state}, ${clock(one.at)}`))));
}
