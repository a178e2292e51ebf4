// Sorting, searching, columns and CSV download of the tables; highlighting and hiding by name.
// Reads what the tables show, and computes nothing.
"use strict";
const Page = (() => {
  const el = (tag, attributes = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "class") made.className = value;
      else if (name in made && name !== "list") made[name] = value;
      else made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
  };

  // ---------------------------------------------------------------- state in the address
  const state = new Map();
  const changed = [];
  let place = "";
  const read = () => {
    const [first, ...rest] = location.hash.slice(1).split("&");
    place = decodeURIComponent(first);
    if (!rest.length && !first.includes("=")) return false;
    state.clear();
    for (const item of first.includes("=") ? [first, ...rest] : rest) {
      const [key, value = ""] = item.split("=").map((part) => decodeURIComponent(part.replace(/\+/g, " ")));
      state.set(key, value);
    }
    if (first.includes("=")) place = "";
    return true;
  };
  const write = () => {
    const items = [...state].sort(([a], [b]) => (a < b ? -1 : 1));
    const text = items.map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(value)}`).join("&");
    history.replaceState(null, "", text || place ? `#${encodeURIComponent(place)}${text ? "&" + text : ""}` : location.href.split("#")[0]);
  };
  const get = (key, otherwise = "") => (state.has(key) ? state.get(key) : otherwise);
  const set = (key, value, otherwise = "") => {
    if (value === otherwise) state.delete(key);
    else state.set(key, value);
    write();
  };
  const announce = () => changed.forEach((call) => call());

  // ---------------------------------------------------------------- highlight and hide
  const matcher = (text, pattern) => {
    const words = text.split("\n").map((word) => word.trim()).filter(Boolean);
    if (!words.length) return null;
    try {
      const tests = words.map((word) =>
        pattern
          ? ((re) => (name) => re.test(name))(new RegExp(word, "iu"))
          : ((low) => (name) => name.toLowerCase().includes(low))(word.toLowerCase())
      );
      return (name) => tests.some((test) => test(name));
    } catch (error) {
      return { error: error.message };
    }
  };
  const rules = () => {
    const pattern = get("pattern") === "1";
    const [hit, hide] = ["highlight", "hide"].map((key) => matcher(get(key), pattern));
    const usable = (rule) => (typeof rule === "function" ? rule : null);
    return { hit: usable(hit), hide: usable(hide), error: (hit && hit.error) || (hide && hide.error) || "" };
  };

  const toolbox = () => {
    const box = document.getElementById("toolbox");
    const area = (key, label) => {
      const input = el("textarea", { rows: 1, id: `tool-${key}`, value: get(key), spellcheck: false });
      input.addEventListener("input", () => { set(key, input.value); announce(); });
      return [el("label", {}, label, input), input];
    };
    const [one, hit] = area("highlight", "Highlight (one text per line)");
    const [two, hide] = area("hide", "Hide (one text per line)");
    const pattern = el("input", { type: "checkbox", id: "tool-pattern", checked: get("pattern") === "1" });
    pattern.addEventListener("change", () => { set("pattern", pattern.checked ? "1" : ""); announce(); });
    const theme = el("select", { id: "tool-theme" }, ...["auto", "light", "dark"].map((name) => el("option", { value: name }, name)));
    theme.addEventListener("change", () => { set("theme", theme.value, "auto"); announce(); });
    const clear = el("button", { type: "button", id: "tool-reset" }, "Reset the page");
    clear.addEventListener("click", () => { state.clear(); write(); announce(); });
    const said = el("p", { class: "note", role: "status", id: "tool-said" });
    box.append(
      el("details", { open: Boolean(get("highlight") || get("hide")) },
        el("summary", {}, "Toolbox: highlight and hide models, theme"),
        el("div", { class: "tools" }, one, two,
          el("label", { class: "check" }, pattern, "as patterns (regular expressions)"),
          el("label", {}, "Theme", theme), clear),
        el("p", { class: "note" }, "Texts are looked for in architecture, regime, budget and model name. Hiding changes what is shown, never a number: means and intervals are still those of all seeds. The address of this page keeps every choice, so that a view can be passed on."),
        said)
    );
    changed.push(() => {
      [[hit, "highlight"], [hide, "hide"]].forEach(([input, key]) => { if (input.value !== get(key)) input.value = get(key); });
      pattern.checked = get("pattern") === "1";
      theme.value = get("theme", "auto");
      if (theme.value === "auto") delete document.documentElement.dataset.theme;
      else document.documentElement.dataset.theme = theme.value;
      const { error } = rules();
      said.textContent = error ? `Not a pattern: ${error}` : "";
      mark();
    });
  };
  const mark = () => {
    const { hit, hide } = rules();
    for (const item of document.querySelectorAll("[data-names]")) {
      item.classList.toggle("hit", Boolean(hit && hit(item.dataset.names)));
      const gone = Boolean(hide && hide(item.dataset.names));
      item.classList.toggle("gone", gone);
      if (item.tagName !== "TR") item.hidden = gone;
    }
    for (const table of document.querySelectorAll("table.grid")) if (table.refresh) table.refresh();
  };

  // ---------------------------------------------------------------- tables
  const save = (name, text, type) => {
    const link = el("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };

  const grid = (table) => {
    const key = (name) => `${table.id}.${name}`;
    const heads = [...table.tHead.rows[0].cells];
    const body = table.tBodies[0];
    const original = [...body.rows];
    const scroll = table.parentElement;
    const tools = el("div", { class: "tools", role: "group", "aria-label": `Tools of the table ${table.caption.textContent}` });
    const count = el("span", { role: "status", class: "note" });
    const shows = (head) => get(key("columns"), null) === null ? !head.classList.contains("extra") : get(key("columns")).split(",").includes(String(heads.indexOf(head)));

    const search = el("input", { type: "search", id: key("search") });
    search.addEventListener("input", () => { set(key("search"), search.value); refresh(); });
    tools.append(el("label", {}, "Search", search));
    const picks = heads.flatMap((head, at) => {
      if (!head.dataset.pick) return [];
      const values = [...new Set(original.map((row) => row.cells[at].firstChild ? row.cells[at].firstChild.textContent : ""))];
      if (values.length < 2) return [];
      const select = el("select", { id: key(`pick${at}`) }, el("option", { value: "" }, "all"), ...values.map((value) => el("option", { value }, value)));
      select.addEventListener("change", () => { set(key(`pick${at}`), select.value); refresh(); });
      tools.append(el("label", {}, head.textContent, select));
      return [[at, select]];
    });
    let interval = null;
    if (table.dataset.intervals) {
      interval = el("select", { id: key("interval") }, ...[["both", "both"], ["sr", "species and retraining (S+R)"], ["r", "retraining (R)"]].map(([value, text]) => el("option", { value }, text)));
      interval.addEventListener("change", () => { set(key("interval"), interval.value, "both"); refresh(); });
      tools.append(el("label", {}, "Intervals", interval));
    }
    const boxes = [];
    if (heads.some((head) => head.classList.contains("extra"))) {
      const list = el("fieldset", {}, el("legend", {}, "Columns"));
      heads.forEach((head, at) => {
        if (!head.classList.contains("num")) return;
        const box = el("input", { type: "checkbox" });
        box.addEventListener("change", () => {
          const on = heads.filter((each, i) => (i === at ? box.checked : shows(each))).map((each) => heads.indexOf(each));
          const usual = heads.filter((each) => !each.classList.contains("extra")).map((each) => heads.indexOf(each));
          set(key("columns"), on.join(","), usual.join(","));
          refresh();
        });
        boxes.push([head, box]);
        list.append(el("label", { class: "check" }, box, head.textContent));
      });
      tools.append(el("details", {}, el("summary", {}, "Columns"), list));
    }
    const csv = el("button", { type: "button" }, "Download CSV");
    csv.addEventListener("click", () => {
      const on = heads.map(shows);
      const line = (row) => [...row.cells].filter((_, at) => on[at]).map((cell) => cell.dataset.csv).join(",");
      save(`${table.id.replace(/-table$/, "")}.csv`, [line(table.tHead.rows[0]), ...[...body.rows].filter((row) => !row.hidden).map(line)].join("\n") + "\n", "text/csv");
    });
    tools.append(csv, count);
    scroll.before(tools);

    heads.forEach((head, at) => {
      const button = el("button", { type: "button" }, ...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const order = head.getAttribute("aria-sort") === "descending" ? "ascending" : head.getAttribute("aria-sort") === "ascending" ? "" : head.classList.contains("num") ? "descending" : "ascending";
        const next = head.getAttribute("aria-sort") === null && !head.classList.contains("num") ? "ascending" : order;
        set(key("sort"), next ? `${at} ${next}` : "");
        refresh();
      });
    });
    const compare = new Intl.Collator("en", { numeric: true }).compare;
    const refresh = () => {
      if (search.value !== get(key("search"))) search.value = get(key("search"));
      for (const [at, select] of picks) select.value = get(key(`pick${at}`));
      if (interval) interval.value = table.dataset.show = get(key("interval"), "both");
      const [column, order] = get(key("sort")).split(" ");
      heads.forEach((head, at) => {
        if (order && String(at) === column) head.setAttribute("aria-sort", order);
        else head.removeAttribute("aria-sort");
      });
      let rows = original;
      if (order && heads[column]) {
        const sign = order === "descending" ? -1 : 1;
        const numeric = heads[column].classList.contains("num");
        const value = (row) => { const cell = row.cells[column]; return numeric ? (cell.dataset.v === undefined ? null : Number(cell.dataset.v)) : cell.textContent; };
        rows = original.map((row) => [value(row), row]).sort(([a], [b]) => a === null || b === null ? (a === null) - (b === null) : sign * (numeric ? a - b : compare(a, b))).map(([, row]) => row);
      }
      if (rows.some((row, at) => body.rows[at] !== row)) body.append(...rows);
      const words = get(key("search")).toLowerCase().split(/\s+/).filter(Boolean);
      let n = 0;
      for (const row of original) {
        const text = row.textContent.toLowerCase() + " " + row.dataset.names.toLowerCase();
        row.hidden = row.classList.contains("gone") || words.some((word) => !text.includes(word)) || picks.some(([at, select]) => select.value && (row.cells[at].firstChild ? row.cells[at].firstChild.textContent : "") !== select.value);
        n += !row.hidden;
      }
      count.textContent = n === original.length ? `${n} rows` : `${n} of ${original.length} rows`;
      const on = heads.map(shows);
      if (boxes.length) {
        boxes.forEach(([head, box]) => { box.checked = on[heads.indexOf(head)]; });
        for (const row of [table.tHead.rows[0], ...original]) [...row.cells].forEach((cell, at) => { cell.style.display = on[at] ? "table-cell" : "none"; });
      }
    };
    table.refresh = refresh;
    changed.push(refresh);
  };

  const start = () => {
    read();
    toolbox();
    document.querySelectorAll("table.grid").forEach(grid);
    announce();
    const go = () => {
      const target = place && document.getElementById(place);
      if (target) {
        for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
        target.scrollIntoView();
      }
    };
    go();
    window.addEventListener("hashchange", () => {
      if (read()) announce();
      else write();
      go();
    });
  };
  return { el, get, set, rules, changed, announce, save, start };
})();
Page.start();
