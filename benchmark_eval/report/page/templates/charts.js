// The charts: chooses rows by the controls and gives them to Vega. Rows are shown as they are in the tables; only
// costs at the reader's prices are computed here.
"use strict";
Page.charts = (() => {
  const { el, get, set } = Page;
  const data = JSON.parse(document.getElementById("page-data").textContent);
  const panels = {};
  const PRICES = ["price.image", "price.specimen"];

  const column = (table, name) => {
    const held = table.columns[name];
    if (held === undefined) return () => null;
    if (held.runs) {
      held.values = held.values.flatMap((value, at) => Array(held.runs[at]).fill(value));
      delete held.runs;
    }
    const { values, words } = held;
    return words ? (at) => words[values[at]] : (at) => values[at];
  };
  const distinct = (read, at) => [...new Set(at.map(read))].filter((value) => value !== null && value !== undefined);
  const number = (value, digits = 3) => (value === null || value === undefined ? "–" : Number(value).toFixed(digits));
  const tidy = (value) => (typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(4)).toString() : String(value ?? ""));

  // ---------------------------------------------------------------- which rows a panel shows
  const choose = (panel) => {
    const table = data.tables[panel.table];
    let at = [...Array(table.n).keys()];
    for (const [name, values] of Object.entries(panel.where)) {
      const read = column(table, name);
      at = at.filter((i) => values.includes(read(i)));
    }
    const words = {};
    const maps = [];
    const choices = {};
    let spec = "";
    const tokens = { "@scale": "linear", "@x": "" };
    let priced = false;
    for (const control of panel.controls) {
      const key = `${panel.id}.${control.id}`;
      if (control.kind === "filter") {
        const read = column(table, control.field);
        const values = distinct(read, at);
        const wanted = get(key, control.default);
        const otherwise = control.last ? values[values.length - 1] : values[0];
        const value = values.includes(wanted) ? wanted : values.includes(control.default) ? control.default : otherwise;
        at = at.filter((i) => read(i) === value);
        choices[control.id] = { values, value };
        words[control.id] = value;
      } else if (control.kind === "set") {
        const read = column(table, control.field);
        const values = distinct(read, at);
        const off = get(key) ? JSON.parse(get(key)) : [];
        at = at.filter((i) => !off.includes(read(i)));
        choices[control.id] = { values, off };
      } else {
        const option = control.options.find((each) => each.value === get(key)) || control.options[0];
        choices[control.id] = { value: option.value };
        words[control.id] = option.label;
        maps.push(option);
        if (option.spec) spec = option.spec;
        if (option.x) tokens["@x"] = option.x;
        if (option.scale) tokens["@scale"] = option.scale;
        priced = priced || option.price;
      }
    }
    const names = Object.keys(table.columns);
    const readers = names.map((name) => column(table, name));
    const prices = PRICES.map((key) => Number(get(key)));
    const { hit, hide } = Page.rules();
    const series = new Map();
    const rows = [];
    for (const i of at) {
      const held = {};
      names.forEach((name, n) => { held[name] = readers[n](i); });
      const row = { ...held };
      for (const option of maps) {
        for (const [name, from] of Object.entries(option.map)) row[name] = from ? held[from] : null;
        Object.assign(row, option.set);
      }
      if (priced) row.x = (prices[0] || prices[1]) && held.n_images !== null && held.n_specimens !== null ? prices[0] * held.n_images + prices[1] * held.n_specimens : null;
      if (spec === "cost" && (row.x === null || row.x === undefined || (tokens["@scale"] === "log" && row.x <= 0))) continue;
      if (row.value === null || row.value === undefined) continue;
      const named = [held.architecture, held.regime, held.budget, held.model].filter(Boolean).join(" ");
      if (hide && hide(named)) continue;
      row.series = panel.series.map((name) => row[name]).join(" | ");
      row.dim = Boolean(hit && !hit(named));
      if (row.kind !== "seed") series.set(row.series, (series.get(row.series) ?? true) && row.dim);
      row.value_text = number(row.value);
      row.interval = row.kind === "seed" ? "" : row.low === null || row.low === undefined ? `none${row.why ? ` (${row.why})` : ""}` : `[${number(row.low)}, ${number(row.high)}] ${row.covers || ""}`;
      row.seeds = "1 (this model)";
      row.source = held.line ? `${held.file}, line ${held.line}` : held.file;
      rows.push(row);
    }
    for (const row of rows) row.line_opacity = series.get(row.series) ? 0.15 : 1;
    tokens["@y"] = panel.y.replace(/\{(\w+)\}/g, (_, name) => words[name] ?? "");
    return { rows, spec, tokens, choices, words, priced };
  };

  // ---------------------------------------------------------------- the chart itself
  const specification = (panel, made, width) => {
    const filled = JSON.stringify(panel.specs[made.spec] || panel.specs[""], (_, value) => (typeof value === "string" && value in made.tokens ? made.tokens[value] : value));
    const spec = JSON.parse(filled);
    const facets = new Set(made.rows.map((row) => row[spec.facet.field])).size || 1;
    const columns = Math.max(1, Math.min(panel.most, facets, Math.floor(width / 260)));
    spec.columns = columns;
    const labels = spec.resolve.scale.y ? 45 : 0;
    if (!spec.spec.width) spec.spec.width = Math.max(140, Math.min(panel.widest, Math.floor((width - 75 - panel.labels - 24 * (columns - 1)) / columns) - labels));
    spec.data = { name: "rows", values: made.rows };
    spec.config = { ...data.config, legend: { ...data.config.legend, columns: width < 560 ? 1 : width < 900 ? 2 : 5, labelLimit: Math.min(300, width - 60) } };
    return spec;
  };
  let pending = 0;
  const draw = async (panel) => {
    pending += 1;
    delete document.documentElement.dataset.ready;
    try {
      await redraw(panel);
    } finally {
      pending -= 1;
      if (!pending && !everything.busy) document.documentElement.dataset.ready = "1";
    }
  };
  const redraw = async (panel) => {
    const turn = (panel.turn = (panel.turn || 0) + 1);
    const made = (panel.made = choose(panel));
    controls(panel, made);
    values(panel, made);
    if (panel.details) about(panel, made);
    const seen = made.rows.length > 0;
    panel.node.querySelector(".nothing").textContent = seen ? "" : made.priced ? "Enter a price per image or per specimen to see the costs." : data.tables[panel.table].n === 0 ? panel.empty || "No data." : "Nothing to show for these choices: no value here, or everything is hidden by the toolbox.";
    panel.node.querySelector(".nothing").hidden = seen;
    panel.chart.hidden = !seen;
    panel.exports.forEach((button) => { button.disabled = !seen; });
    if (!seen) { if (panel.result) panel.result.finalize(); panel.result = panel.view = null; panel.chart.replaceChildren(); return; }
    if (panel.at) for (const row of made.rows) row.at = Math.abs(row[panel.at.field] - threshold(panel)) < 1e-9;
    const spec = specification(panel, made, panel.node.clientWidth);
    const holder = el("div", { "aria-hidden": "true" });
    const result = await vegaEmbed(holder, spec, { mode: "vega-lite", actions: false, renderer: "svg", logLevel: 1, tooltip: { theme: "custom" } });
    if (turn !== panel.turn) { result.finalize(); return; }
    if (panel.result) panel.result.finalize();
    panel.result = result;
    panel.view = result.view;
    panel.chart.replaceChildren(holder);
    if (panel.chart.scrollWidth > panel.chart.clientWidth) panel.chart.tabIndex = 0;
    else panel.chart.removeAttribute("tabindex");
    panel.chart.setAttribute("aria-label", `${panel.about} Shown: ${Object.values(made.words).filter(Boolean).join(", ")}. The numbers are in the table below.`);
  };

  // ---------------------------------------------------------------- controls
  const threshold = (panel) => Number(get(`${panel.id}.at`, String(panel.at.default)));
  const build = (panel) => {
    const tools = panel.node.querySelector(".tools");
    panel.inputs = {};
    const update = (key, value, otherwise) => { set(key, value, otherwise); draw(panel); };
    for (const control of panel.controls) {
      const key = `${panel.id}.${control.id}`;
      if (control.kind === "set") {
        const box = el("fieldset", {}, el("legend", {}, control.label));
        panel.inputs[control.id] = box;
        tools.append(box);
        continue;
      }
      if (control.kind === "map" && control.options.length === 1) {
        const word = control.options[0].label;
        tools.append(el("span", { class: "note field" }, `${control.label}: ${word}`));
        continue;
      }
      if (control.search) {
        const list = el("datalist", { id: `${key}-list` });
        const input = el("input", { type: "search", id: key, list: `${key}-list`, autocomplete: "off" });
        input.addEventListener("change", () => { if (input.value) update(key, input.value); });
        panel.inputs[control.id] = input;
        input.choices = list;
        tools.append(el("label", {}, control.label, input), list);
        continue;
      }
      const select = el("select", { id: key });
      if (control.kind === "map") select.append(...control.options.map((each) => el("option", { value: each.value }, each.label)));
      select.addEventListener("change", () => update(key, select.value, control.kind === "map" ? control.options[0].value : control.default));
      panel.inputs[control.id] = select;
      tools.append(el("label", {}, control.label, select));
    }
    if (panel.controls.some((control) => (control.options || []).some((each) => each.price))) {
      panel.prices = PRICES.map((key) => {
        const input = el("input", { type: "number", min: "0", step: "any", id: `${panel.id}.${key}` });
        input.addEventListener("input", () => { set(key, Number(input.value) > 0 ? String(Number(input.value)) : ""); everything(); });
        const label = el("label", {}, `Price per ${key.split(".")[1]}`, input);
        tools.append(label);
        return [key, input, label];
      });
    }
    if (panel.at) {
      const { low, high, step, label } = panel.at;
      const input = el("input", { type: "range", min: low, max: high, step, id: `${panel.id}.at` });
      const output = el("output", { id: `${panel.id}.at-value` });
      input.addEventListener("input", () => { output.textContent = Number(input.value).toFixed(2); set(`${panel.id}.at`, String(Number(input.value)), String(panel.at.default)); draw(panel); });
      panel.slider = [input, output];
      tools.append(el("label", {}, label, input, output));
    }
    panel.exports = [["svg", "image/svg+xml"], ["png", "image/png"]].map(([kind]) => {
      const button = el("button", { type: "button" }, `Save ${kind.toUpperCase()}`);
      button.addEventListener("click", async () => {
        const view = panel.view;
        view.background("white");
        const address = await view.toImageURL(kind, kind === "png" ? 2 : 1);
        view.background(null);
        const link = el("a", { href: address, download: `${panel.id}.${kind}` });
        document.body.append(link);
        link.click();
        link.remove();
      });
      tools.append(button);
      return button;
    });
  };
  const options = (node, values) => {
    if ([...node.children].length !== values.length || values.some((value, at) => node.children[at].value !== String(value))) node.replaceChildren(...values.map((value) => el("option", { value: String(value) }, String(value))));
  };
  const controls = (panel, made) => {
    for (const control of panel.controls) {
      const node = panel.inputs[control.id];
      const { values, value, off } = made.choices[control.id];
      if (!node) continue;
      if (control.kind === "set") {
        const names = [...node.querySelectorAll("input")].map((box) => box.value);
        if (names.join("\n") !== values.join("\n")) {
          node.replaceChildren(node.firstChild, ...values.map((name) => {
            const box = el("input", { type: "checkbox", value: name });
            box.addEventListener("change", () => {
              const gone = [...node.querySelectorAll("input")].filter((each) => !each.checked).map((each) => each.value);
              set(`${panel.id}.${control.id}`, gone.length ? JSON.stringify(gone) : "");
              draw(panel);
            });
            return el("label", { class: "check" }, box, name);
          }));
        }
        node.querySelectorAll("input").forEach((box) => { box.checked = !off.includes(box.value); });
        node.hidden = values.length < 2;
        continue;
      }
      if (control.kind === "filter") options(control.search ? node.choices : node, control.search ? [...values].sort() : values);
      node.value = value === undefined ? "" : String(value);
    }
    if (panel.prices) for (const [key, input, label] of panel.prices) {
      if (document.activeElement !== input) input.value = get(key);
      label.hidden = !made.priced;
    }
    const scale = panel.inputs.scale;
    if (scale) scale.parentElement.hidden = made.spec !== "cost";
    if (panel.slider) {
      panel.slider[0].value = threshold(panel);
      panel.slider[1].textContent = threshold(panel).toFixed(2);
    }
  };

  // ---------------------------------------------------------------- the numbers below a chart
  const values = (panel, made) => {
    const rows = panel.at ? made.rows.filter((row) => Math.abs(row[panel.at.field] - threshold(panel)) < 1e-9) : made.rows;
    panel.listed = rows;
    const shown = panel.columns.filter(([name]) => rows.some((row) => row[name] !== null && row[name] !== undefined && row[name] !== "" && !(name === "architecture" && row[name] === "default")));
    const details = panel.node.querySelector(".values");
    details.querySelector("summary").textContent = panel.at ? `Values at the threshold ${threshold(panel).toFixed(2)}` : `Values of this chart (${rows.length} rows)`;
    const fill = () => {
      const box = details.querySelector(".scroll");
      const most = 400;
      const cell = (row, name) => {
        const value = row[name];
        if (name === "low" && (value === null || value === undefined) && row.why) return `none (${row.why})`;
        return typeof value === "number" ? tidy(value) : String(value ?? "");
      };
      box.replaceChildren(el("table", {},
        el("caption", {}, `${panel.title}: ${Object.values(made.words).filter(Boolean).join(", ")}`),
        el("thead", {}, el("tr", {}, ...shown.map(([, label]) => el("th", { scope: "col" }, label)))),
        el("tbody", {}, ...rows.slice(0, most).map((row) => el("tr", {}, ...shown.map(([name]) => el("td", { class: typeof row[name] === "number" ? "num" : "txt" }, cell(row, name))))))));
      if (rows.length > most) box.append(el("p", { class: "note" }, `The first ${most} of ${rows.length} rows; the CSV has all.`));
    };
    details.ontoggle = () => { if (details.open) fill(); };
    if (details.open) fill();
    details.querySelector("button").onclick = () => {
      const quoted = (value) => { let text = String(value ?? ""); if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`; return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text; };
      const names = shown.map(([name]) => name);
      Page.save(`${panel.id}.csv`, [names.join(","), ...rows.map((row) => names.map((name) => quoted(row[name])).join(","))].join("\n") + "\n", "text/csv");
    };
  };

  // ---------------------------------------------------------------- one species
  const about = (panel, made) => {
    const name = made.words.species;
    const facts = data.species[name] || [];
    const box = panel.node.querySelector(".about");
    const table = data.tables.confusions;
    const read = (field) => column(table, field);
    const [truth, label] = [read("true_species"), read("predicted_species")];
    const list = (title, own, other) => {
      const at = [...Array(table.n).keys()].filter((i) => own(i) === name).sort((a, b) => read("n")(b) - read("n")(a)).slice(0, 12);
      const fields = ["architecture", "split", "threshold", "relation", "n", "share", "n_seeds", "reason"];
      const heads = ["Architecture", "Split", "Detections", "Relation", "Specimens per seed", "Share of the true species", "Seeds (n)", "Not named in texts, because"];
      return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title }, at.length
        ? el("table", {}, el("caption", {}, `${title} (the ${at.length} most frequent; descriptive, without intervals)`),
            el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Species"), ...heads.map((head) => el("th", { scope: "col" }, head)))),
            el("tbody", {}, ...at.map((i) => el("tr", {}, el("td", {}, other(i)), ...fields.map((field) => { const value = read(field)(i); return el("td", { class: typeof value === "number" ? "num" : "txt" }, tidy(value)); })))))
        : el("p", { class: "note" }, `${title}: no pair in confusions.csv.`));
    };
    box.replaceChildren(
      el("h4", {}, name || ""),
      el("dl", { class: "facts" }, ...facts.map(([term, text]) => el("div", {}, el("dt", {}, term), el("dd", {}, text)))),
      list(`What ${name} is mistaken for`, truth, label),
      list(`What is mistaken for ${name}`, label, truth));
  };

  // ---------------------------------------------------------------- all panels
  const everything = async () => {
    const seen = (panel) => { const box = panel.node.getBoundingClientRect(); return box.bottom > -200 && box.top < innerHeight + 200; };
    const run = (everything.run = (everything.run || 0) + 1);
    everything.busy = true;
    delete document.documentElement.dataset.ready;
    const list = Object.values(panels).sort((a, b) => seen(b) - seen(a));
    for (const panel of list) {
      if (run !== everything.run) return;
      await draw(panel);
      await new Promise((done) => setTimeout(done, 0));
    }
    everything.busy = false;
    document.documentElement.dataset.ready = "1";
  };
  const start = () => {
    for (const panel of data.panels) {
      panel.node = document.getElementById(`panel-${panel.id}`);
      panel.chart = panel.node.querySelector(".chart");
      panels[panel.id] = panel;
      build(panel);
    }
    Page.changed.push(() => { everything(); });
    everything();
    let width = innerWidth;
    let timer = 0;
    addEventListener("resize", () => {
      clearTimeout(timer);
      timer = setTimeout(() => { if (innerWidth !== width) { width = innerWidth; everything(); } }, 200);
    });
  };
  return { panels, start };
})();
Page.charts.start();
