// The two things on the page that move: the filter of the findings, and the charts.
(() => {
  "use strict";

  function startFilter() {
    const form = document.querySelector(".filter");
    const rows = [...document.querySelectorAll(".findings tbody tr[data-verdict]")];
    const status = form.querySelector(".shown");
    const texts = rows.map((row) => row.textContent.toLowerCase());

    function apply() {
      const verdict = form.elements.verdict.value;
      const words = form.elements.text.value.toLowerCase().split(/\s+/);
      let shown = 0;
      rows.forEach((row, index) => {
        const fits =
          (!verdict || row.dataset.verdict === verdict) &&
          words.every((word) => texts[index].includes(word));
        row.hidden = !fits;
        shown += fits ? 1 : 0;
      });
      status.textContent = `${shown} of ${rows.length} rows shown`;
    }

    form.hidden = rows.length === 0;
    form.addEventListener("input", apply);
    form.addEventListener("change", apply);
    form.addEventListener("submit", (event) => event.preventDefault());
    for (const link of document.querySelectorAll("[data-show]")) {
      link.addEventListener("click", () => {
        form.elements.verdict.value = link.dataset.show;
        form.elements.text.value = "";
        apply();
      });
    }
    apply();
  }

  const NARROW = 420; // px of a chart below which its legend has one column

  async function draw(place, spec) {
    const width = place.clientWidth;
    if (!width || width === place.drawnWidth) {
      return;
    }
    place.drawnWidth = width;
    const fitted = structuredClone(spec);
    fitted.width = width;
    fitted.config.legend.columns = width < NARROW ? 1 : 3;
    try {
      const before = place.drawn;
      // `ast`: expressions are interpreted, so the page needs no eval.
      place.drawn = await vegaEmbed(place, fitted, {
        ast: true,
        actions: false,
        defaultStyle: false,
        renderer: "svg",
      });
      before?.finalize();
    } catch (error) {
      place.textContent = `This chart could not be drawn: ${error.message}`;
      console.error(error);
    }
  }

  async function startCharts() {
    const observer = new ResizeObserver((entries) => {
      for (const { target } of entries) {
        draw(target, target.spec);
      }
    });
    for (const data of document.querySelectorAll("script[data-chart]")) {
      const place = document.getElementById(data.dataset.chart);
      place.spec = JSON.parse(data.textContent);
      await draw(place, place.spec);
      observer.observe(place);
    }
    document.documentElement.dataset.charts = "drawn";
  }

  startFilter();
  startCharts();
})();
