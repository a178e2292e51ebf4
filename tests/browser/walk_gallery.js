// Uses every filter of the gallery as a visitor would, and sends what was shown as JSON to the page around it.
(() => {
  const seen = { errors: [], filters: {}, pairs: [], images: [], resources: [], controls: [], contrast: {} };
  window.addEventListener("error", (event) => seen.errors.push(String(event.message || event.target.src)), true);
  window.addEventListener("unhandledrejection", (event) => seen.errors.push(String(event.reason)));
  document.addEventListener("securitypolicyviolation", (event) => seen.errors.push(`blocked: ${event.blockedURI}`));

  const wait = (ms) => new Promise((done) => setTimeout(done, ms));
  const visible = (node) => node.offsetParent !== null;

  function shown() {
    const cases = [...document.querySelectorAll("[data-case]")];
    return {
      cases: cases.flatMap((one, at) => (visible(one) ? [at] : [])),
      groups: [...document.querySelectorAll("[data-group]")].filter(visible).length,
      status: document.getElementById("shown").textContent,
    };
  }

  function choose(select, value) {
    select.value = value;
    select.dispatchEvent(new Event("change", { bubbles: true }));
  }

  // contrast of text with the background behind it, as WCAG defines it
  function channels(colour) {
    return colour.match(/[\d.]+/g).slice(0, 3).map(Number);
  }
  function luminance(colour) {
    const [r, g, b] = channels(colour).map((c) => {
      const s = c / 255;
      return s <= 0.03928 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }
  function background(node) {
    for (let at = node; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (!/, 0\)$|transparent/.test(colour)) return colour;
    }
    return "rgb(255, 255, 255)";
  }
  function contrast(node) {
    const [high, low] = [getComputedStyle(node).color, background(node)].map(luminance).sort((a, b) => b - a);
    return (high + 0.05) / (low + 0.05);
  }

  window.addEventListener("load", async () => {
    try {
      seen.dark = matchMedia("(prefers-color-scheme: dark)").matches;
      seen.width = innerWidth;
      seen.scroll = document.documentElement.scrollWidth;
      seen.before = shown();
      const selects = [...document.querySelectorAll("select")];
      for (const select of selects) {
        const of = (seen.filters[select.name] = {});
        for (const option of [...select.options].filter((o) => o.value !== "")) {
          choose(select, option.value);
          of[option.value] = shown();
        }
        choose(select, "");
      }
      for (const [a, b] of [[0, 1], [1, 2], [2, 3]].map(([i, j]) => [selects[i], selects[j]])) {
        if (!a || !b) continue;
        for (const option of [...b.options].filter((o) => o.value !== "")) {
          choose(a, a.options[1].value);
          choose(b, option.value);
          seen.pairs.push({ chosen: { [a.name]: a.value, [b.name]: b.value }, ...shown() });
        }
        document.querySelector("button[type=reset]").click();
        await wait(50);
        seen.pairs.push({ chosen: {}, ...shown() });
      }
      for (const image of document.querySelectorAll("img")) {
        image.loading = "eager";
        for (let i = 0; i < 100 && !image.complete; i++) await wait(50);
        seen.images.push({ src: image.getAttribute("src"), width: image.naturalWidth, alt: image.alt, box: image.getBoundingClientRect().width });
      }
      for (const node of document.querySelectorAll("select, button, a[href], [tabindex]")) {
        const named = node.labels && node.labels.length ? node.labels[0].textContent : node.textContent;
        node.focus();
        seen.controls.push({ tag: node.tagName, name: named.trim(), focused: document.activeElement === node });
      }
      for (const name of ["body", "dt", "dd", "a", "label", "select", "button", "h2", "td", "p"]) {
        const node = document.querySelector(`main ${name}`) || document.querySelector(name);
        if (node) seen.contrast[name] = contrast(node);
      }
      seen.resources = performance.getEntriesByType("resource").map((entry) => entry.name);
    } catch (error) {
      seen.errors.push(String(error && error.stack));
    }
    parent.postMessage(JSON.stringify(seen), "*");
  });
})();
