"use strict";
// Shows the cases that fit every filter. Without this script, all cases are shown.
(() => {
  const form = document.getElementById("filters");
  const selects = [...form.querySelectorAll("select")];
  const cases = [...document.querySelectorAll("[data-case]")];
  const groups = [...document.querySelectorAll("[data-group]")];
  const status = document.getElementById("shown");

  function apply() {
    const chosen = selects.filter((select) => select.value !== "");
    let shown = 0;
    for (const one of cases) {
      const fits = chosen.every((select) => one.dataset[select.name].split(" ").includes(select.value));
      one.hidden = !fits;
      if (fits) shown += 1;
    }
    for (const group of groups) {
      group.hidden = group.querySelector("[data-case]:not([hidden])") === null;
    }
    status.textContent = `${shown} of ${cases.length} cases shown`;
  }

  form.addEventListener("change", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(apply)); // after the selects have their new values
  form.hidden = cases.length === 0;
  apply();
})();
