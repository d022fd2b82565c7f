// Draws the figures in the colours of the style sheet, and draws them again when the theme changes or paper calls.
(function () {
  "use strict";
  const root = document.documentElement;
  const specs = JSON.parse(document.getElementById("figures").textContent);
  const places = Array.from(document.querySelectorAll("[data-figure]"));
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const touch = window.matchMedia("(pointer: coarse)").matches;
  const config = {
    responsive: true,
    displayModeBar: false, // dragging zooms, a double click returns: no buttons needed
  };
  const PAPER_WIDTH = 660;
  const PAPER_HEIGHT = 330; // two figures on a page
  const LEGEND_LINE = 23; // pixels; figures have room for two lines

  function coloured(value, style) {
    if (typeof value === "string") {
      return value.startsWith("var(--") ? style.getPropertyValue(value.slice(4, -1)).trim() : value;
    }
    if (Array.isArray(value)) return value.map((item) => coloured(item, style));
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, coloured(item, style)]));
    }
    return value;
  }

  // What a reader chose in the legend outlives a change of theme.
  function keepChoices(place, data) {
    (place.data || []).forEach((trace, k) => { if (trace.visible !== undefined) data[k].visible = trace.visible; });
  }

  // How many lines plotly needs for the names of the traces, about: it gives all the width of the longest.
  function legendLines(data, width) {
    const names = data.filter((trace) => trace.name && trace.showlegend !== false).map((trace) => trace.name.length);
    const inLine = Math.max(1, Math.floor((width - 70) / (45 + 6.5 * Math.max(0, ...names))));
    return Math.ceil(names.length / inLine);
  }

  function draw(place, width) {
    const spec = coloured(specs[place.dataset.figure], getComputedStyle(root));
    keepChoices(place, spec.data);
    if (touch) spec.layout.dragmode = false; // a finger on a plot scrolls the page
    spec.layout.height += LEGEND_LINE * Math.max(0, legendLines(spec.data, width || place.clientWidth) - 2);
    if (width) Object.assign(spec.layout, { width: width, height: PAPER_HEIGHT, autosize: false });
    try {
      if (!place.data) place.textContent = "";
      place.style.minHeight = 0;
      Promise.resolve(Plotly.react(place, spec.data, spec.layout, config)).then(
        () => place.setAttribute("data-drawn", "yes"),
        (error) => refuse(place, error));
    } catch (error) {
      refuse(place, error);
    }
  }

  function refuse(place, error) {
    place.setAttribute("data-drawn", "no");
    place.textContent = "This plot could not be drawn: " + error + ". Its numbers are in the tables below.";
  }

  // What is hidden is drawn when it is chosen: it has no width before.
  function drawAll(width) {
    places.filter((place) => !place.closest("figure").hidden).forEach((place) => draw(place, width));
  }

  function isDark() {
    return root.dataset.theme ? root.dataset.theme === "dark" : dark.matches;
  }

  const button = document.getElementById("theme");
  function nameButton() {
    button.textContent = isDark() ? "Light" : "Dark";
  }
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    nameButton();
    drawAll();
  });
  dark.addEventListener("change", () => { nameButton(); drawAll(); });

  // Shows of each chapter the figures that fit what is chosen; a figure fits when all that it names agrees.
  function choose(form, named) {
    const figures = Array.from(form.parentNode.querySelectorAll("figure[data-choice]"));
    const selects = Array.from(form.elements);
    const offered = figures.map((figure) => JSON.parse(figure.dataset.choice));
    const complete = offered.filter((choice) => selects.every((select) => select.name in choice));
    const likeness = (choice) => selects.filter((select) => choice[select.name] === select.value).length;
    // Not every combination was measured: what was named last holds, the rest follows as far as it can.
    const open = complete.filter((choice) => !named || choice[named.name] === named.value);
    const chosen = named ? open.reduce((best, choice) => (likeness(choice) > likeness(best) ? choice : best)) : open[0];
    selects.forEach((select) => { select.value = chosen[select.name]; });
    figures.forEach((figure, k) => {
      figure.hidden = !Object.entries(offered[k]).every(([name, value]) => value === chosen[name]);
    });
  }

  document.querySelectorAll("form[data-choose]").forEach((form) => {
    form.hidden = false;
    choose(form);
    form.addEventListener("change", (event) => { choose(form, event.target); drawAll(); });
    form.addEventListener("submit", (event) => event.preventDefault());
  });

  let themeBeforePrint;
  window.addEventListener("beforeprint", () => {
    themeBeforePrint = root.dataset.theme;
    root.dataset.theme = "light";
    drawAll(PAPER_WIDTH);
  });
  window.addEventListener("afterprint", () => {
    if (themeBeforePrint) root.dataset.theme = themeBeforePrint; else delete root.dataset.theme;
    drawAll();
  });

  nameButton();
  drawAll();
})();
