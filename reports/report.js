// What moves on the page: the filter of the findings, the charts, and the pair that
// the keyboard is at.
(() => {
  "use strict";

  function startFilter() {
    const form = document.querySelector(".filter");
    if (!form) {
      return;
    }
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
      place.showCursor?.();
    } catch (error) {
      place.textContent = `This chart could not be drawn: ${error.message}`;
      console.error(error);
    }
  }

  const STEPS = {
    ArrowUp: [-1, 0],
    ArrowDown: [1, 0],
    ArrowLeft: [0, -1],
    ArrowRight: [0, 1],
  };

  // Let the arrow keys walk over a matrix: the chart frames the pair, a line below
  // the chart says what was measured there.
  function startMatrix(place) {
    const figure = place.closest("figure");
    const levels = [...figure.querySelectorAll(".levels li")].map((li) => li.innerText);
    const names = place.spec.params.find(({ name }) => name === "names").value;
    const { cells } = place.spec.datasets;
    const known = new Map(cells.map((cell) => [`${cell.s} ${cell.d}`, cell]));
    let at = [-1, -1];

    function words([row, column]) {
      if (row === column) {
        return names[row];
      }
      const pair = `${names[row]} - ${names[column]}`;
      const cell = known.get(`${row} ${column}`);
      if (!cell) {
        return `${pair}: not measured`;
      }
      const crowded = "c" in cell ? `; ${cell.c} while others measured` : "";
      return `${pair}: ${cell.v} ${place.dataset.unit}, ${levels[cell.k]}${crowded}`;
    }

    place.showCursor = () => {
      const [row, column] = at;
      const view = place.drawn.view;
      view.signal("cursor_row", row).signal("cursor_column", column).runAsync();
    };

    place.addEventListener("keydown", (event) => {
      const step = STEPS[event.key];
      if (!step || !place.drawn) {
        return;
      }
      event.preventDefault();
      const last = names.length - 1;
      at = at.map((number, axis) => Math.min(last, Math.max(0, number + step[axis])));
      place.showCursor();
      figure.querySelector(".at").textContent = words(at);
      const frame = place.parentElement;
      frame.scrollLeft = (at[1] / last) * (frame.scrollWidth - frame.clientWidth);
    });
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
      if (place.classList.contains("matrix")) {
        startMatrix(place);
      }
    }
    document.documentElement.dataset.charts = "drawn";
  }

  startFilter();
  startCharts();
})();
