// Reads the first page, then visits every category of Snakemake's report, and every row with its image and description. Leaves
// their content as JSON in the page.
(async () => {
  const wait = (ms) => new Promise((done) => setTimeout(done, ms));
  const until = async (what) => {
    for (let i = 0; i < 100 && !what(); i++) await wait(50);
    return what();
  };
  const app = document.getElementById("app");
  const link = (text) => [...app.querySelectorAll("a")].find((a) => a.textContent.trim() === text);
  const rows = () => [...app.querySelectorAll("tbody tr")];
  const seen = { about: "", links: [], categories: [], rows: [], errors: [] };
  window.addEventListener("error", (event) => seen.errors.push(String(event.message)));
  try {
    await until(() => link("About"));
    // the first page is in a component of its own, below the menu
    const body = document.body.cloneNode(true);
    body.querySelectorAll("script, nav").forEach((node) => node.remove());
    seen.about = body.textContent.replace(/\s+/g, " ");
    seen.links = [...body.querySelectorAll("a[href]")].map((a) => a.getAttribute("href"));
    const menu = [...app.querySelectorAll("nav a")].map((a) => a.textContent.trim());
    seen.categories = menu.slice(menu.indexOf("About") + 1).filter(Boolean);
    for (const category of seen.categories) {
      (await until(() => link(category))).click();
      await until(() => rows().length);
      const formats = [...app.querySelectorAll("fieldset label")].map((l) => l.textContent.trim());
      for (let i = 0; i < rows().length; i++) {
        const cells = [...rows()[i].querySelectorAll("td")].map((td) => td.textContent.trim());
        const row = { category, formats, labels: cells.filter(Boolean), width: null };
        const show = rows()[i].querySelector("a[iconname='eye']");
        if (formats.length) {
          show.click();
          const picture = () => app.querySelector("img[src^='data/raw/']");
          await until(() => picture() && picture().complete && picture().naturalWidth);
          row.width = picture() ? picture().naturalWidth : 0;
          row.picture = picture() ? picture().getAttribute("src") : "";
        }
        rows()[i].querySelector("a[iconname='information-circle']").click();
        const described = () => [...app.querySelectorAll("li")].find((li) => li.textContent === "Description");
        const text = await until(() => described() && described().nextSibling);
        row.description = text ? text.textContent.trim() : "";
        seen.rows.push(row);
        link(category).click();
        await until(() => rows().length);
      }
      link("Results").click();
      await until(() => link("About") || link(seen.categories[0]));
    }
  } catch (error) {
    seen.errors.push(String(error && error.stack));
  }
  const left = document.createElement("pre");
  left.id = "seen";
  left.textContent = JSON.stringify(seen);
  document.body.append(left);
})();
