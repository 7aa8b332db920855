// What moves on the page: the filters of tables, the charts, and the square that the
// keyboard is at.
(() => {
  "use strict";

  const MOST_FOUND = 300; // rows at a time that are no HTML at first
  const CLASSES = ["check", "", "metric", "place", "number", "limit", "reason"];
  const SYMBOLS = {
    pass: "✓",
    fail: "✕",
    "not shown": "!",
    undecided: "?",
    skipped: "–",
  };

  function element(tag, name, text = "") {
    const made = document.createElement(tag);
    made.className = name;
    made.textContent = text;
    return made;
  }

  // Shorten a text between two words.
  function shortened(words, most) {
    const kept = words.slice(0, most - 1);
    return `${words[most - 1] === " " ? kept : kept.replace(/\s\S*$/, "")}…`;
  }

  // A row of findings that was packed: [verdict, checks, cells, places], a cell
  // is its lines.
  function packedRow([verdict, , cells]) {
    const row = element("tr", "");
    const badge = element("span", `badge ${verdict.replace(" ", "-")}`);
    const symbol = element("span", "symbol", SYMBOLS[verdict]);
    symbol.setAttribute("aria-hidden", "true");
    badge.append(symbol, verdict);
    row.dataset.verdict = verdict;
    row.append(element("td", ""));
    row.firstChild.append(badge);
    cells.forEach(([first, ...details], index) => {
      const cell = element("td", CLASSES[index], first);
      const most = CLASSES[index] === "reason" ? 1000 : 200;
      if (first.length > most) {
        cell.textContent = shortened(first, most);
        cell.title = first;
      }
      cell.append(...details.map((line) => element("span", "detail", line)));
      row.append(cell);
    });
    return row;
  }

  async function unpacked(table) {
    const packed = document.querySelector(`script[data-rows="${table}"]`);
    if (!packed) {
      return [];
    }
    const bytes = Uint8Array.from(atob(JSON.parse(packed.textContent)), (letter) =>
      letter.charCodeAt(0),
    );
    const plain = new Blob([bytes])
      .stream()
      .pipeThrough(new DecompressionStream("gzip"));
    const rows = JSON.parse(await new Response(plain).text());
    return rows.map((row) => ({
      row,
      verdict: row[0],
      checks: row[1],
      text: row.flat(2).join("\n").toLowerCase(),
    }));
  }

  async function startFilter(form) {
    const body = document.querySelector(`#${form.dataset.table} tbody`);
    const shown = [...body.querySelectorAll("tr:not(.empty)")].map((row) => ({
      row,
      verdict: row.dataset.verdict,
      checks: (row.dataset.check ?? "").split("\n"),
      metric: row.dataset.metric,
      text: `${row.textContent} ${row.dataset.places ?? ""}`.toLowerCase(),
    }));
    const status = form.querySelector(".shown");
    const rest = await unpacked(form.dataset.table).catch((error) => {
      console.error(error);
      form.after(element("p", "note", "This browser cannot search rows not shown."));
      return [];
    });
    const total = shown.length + rest.length;
    let added = [];

    function apply() {
      const { verdict, check, metric, text } = form.elements;
      const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
      const asked = words.length > 0 || verdict?.value || check?.value || metric?.value;
      const fits = (each) =>
        (!verdict?.value || each.verdict === verdict.value) &&
        (!check?.value || each.checks.includes(check.value)) &&
        (!metric?.value || each.metric === metric.value) &&
        words.every((word) => each.text.includes(word));
      let found = 0;
      for (const each of shown) {
        each.row.hidden = !fits(each);
        found += each.row.hidden ? 0 : 1;
      }
      const more = asked ? rest.filter(fits) : [];
      added.forEach((row) => row.remove());
      added = more.slice(0, MOST_FOUND).map(({ row }) => packedRow(row));
      body.append(...added);
      const seen = found + added.length;
      const all = found + more.length;
      status.textContent =
        seen < all
          ? `${all} of ${total} rows found, the first ${seen} shown`
          : `${seen} of ${total} rows shown`;
    }

    form.hidden = shown.length === 0;
    form.addEventListener("input", apply);
    form.addEventListener("change", apply);
    form.addEventListener("submit", (event) => event.preventDefault());
    if (form.elements.verdict) {
      for (const link of document.querySelectorAll("[data-show]")) {
        link.addEventListener("click", () => {
          form.reset();
          form.elements.verdict.value = link.dataset.show;
          apply();
        });
      }
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

  // Let the arrow keys walk over a grid: the chart frames the square, a line below
  // the chart says what was measured there.
  function startGrid(place) {
    const params = Object.fromEntries(
      place.spec.params.map(({ name, value }) => [name, value]),
    );
    const { rows, columns, units, levels, meanings } = params;
    const { cells, marks } = place.spec.datasets;
    const known = new Map(cells.map((cell) => [`${cell.s} ${cell.d}`, cell]));
    const symbols = new Map(marks.map((mark) => [`${mark.s} ${mark.d}`, mark]));
    const said = place.closest("figure").querySelector(".at") ?? below(place);
    let at = [-1, -1];

    place.setAttribute("role", "application");
    place.tabIndex = 0;
    place.setAttribute(
      "aria-label",
      `${place.spec.description} The arrow keys go from square to square.`,
    );

    function words([row, column]) {
      if (params.same && row === column) {
        return rows[row];
      }
      const where = `${rows[row]} - ${columns[column]}`;
      const cell = known.get(`${row} ${column}`);
      const symbol = symbols.get(`${row} ${column}`);
      if (!cell) {
        return `${where}: ${symbol ? meanings[symbol.m] : "not measured"}`;
      }
      const second = "c" in cell ? `; ${cell.c} ${params.second}` : "";
      const meaning = symbol && !second ? `; ${meanings[symbol.m]}` : "";
      return `${where}: ${cell.v} ${units[column]}, ${levels[cell.k]}${second}${meaning}`;
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
      const last = [rows.length - 1, columns.length - 1];
      at = at.map((number, axis) =>
        Math.min(last[axis], Math.max(0, number + step[axis])),
      );
      place.showCursor();
      said.textContent = words(at);
      const frame = place.parentElement;
      const share = last[1] ? at[1] / last[1] : 0;
      frame.scrollLeft = share * (frame.scrollWidth - frame.clientWidth);
    });
  }

  function below(place) {
    const said = document.createElement("p");
    said.className = "at";
    said.setAttribute("role", "status");
    place.parentElement.after(said);
    return said;
  }

  // A wide chart scrolls in a frame of its own.
  function widen(place) {
    if (!place.parentElement.classList.contains("wide-chart")) {
      const frame = document.createElement("div");
      frame.className = "wide-chart";
      place.replaceWith(frame);
      frame.append(place);
    }
    place.classList.add("matrix");
    place.style.minWidth = `${place.spec.usermeta.least_width}px`;
  }

  // One choice of published systems for all charts that have a number of one.
  function startPublished(places) {
    const charts = places.filter(({ spec }) => spec.datasets?.published?.length);
    if (charts.length === 0) {
      return;
    }
    const systems = new Map();
    for (const { spec } of charts) {
      for (const { system, title } of spec.datasets.published) {
        systems.set(system, title);
      }
    }
    const choice = document.createElement("details");
    choice.className = "published";
    const summary = document.createElement("summary");
    summary.textContent = "Published systems to compare with";
    const list = document.createElement("fieldset");
    const legend = document.createElement("legend");
    legend.textContent = "Shown in every chart that has a number of them";
    list.append(legend);
    for (const [system, title] of [...systems].sort()) {
      const label = document.createElement("label");
      const box = document.createElement("input");
      box.type = "checkbox";
      box.value = system;
      label.append(box, ` ${system}: ${title}`);
      list.append(label);
    }
    choice.append(summary, list);
    choice.addEventListener("change", () => {
      const chosen = [...list.querySelectorAll("input:checked")].map(
        ({ value }) => value,
      );
      for (const place of charts) {
        place.spec.params.find(({ name }) => name === "published").value = chosen;
        place.drawn?.view.signal("published", chosen).runAsync();
      }
    });
    const section = charts[0].closest("section") ?? charts[0].parentElement;
    const first = section.querySelector(".figures") ?? section.querySelector("figure");
    first.before(choice);
  }

  async function startCharts() {
    const observer = new ResizeObserver((entries) => {
      for (const { target } of entries) {
        draw(target, target.spec);
      }
    });
    const places = [];
    for (const data of document.querySelectorAll("script[data-chart]")) {
      const place = document.getElementById(data.dataset.chart);
      place.spec = JSON.parse(data.textContent);
      places.push(place);
      if (place.spec.usermeta?.grid) {
        startGrid(place);
      }
      if (place.spec.usermeta?.least_width) {
        widen(place);
      }
    }
    startPublished(places);
    for (const place of places) {
      await draw(place, place.spec);
      observer.observe(place);
    }
    document.documentElement.dataset.charts = "drawn";
  }

  document.querySelectorAll("form.filter").forEach(startFilter);
  startCharts();
})();
