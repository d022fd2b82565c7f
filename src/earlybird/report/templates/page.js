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
  const NARROW = 420; // below it legends take more lines

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

  function draw(place, width) {
    const spec = coloured(specs[place.dataset.figure], getComputedStyle(root));
    keepChoices(place, spec.data);
    if (touch) spec.layout.dragmode = false; // a finger on a plot scrolls the page
    if (place.clientWidth < NARROW) spec.layout.height += 70;
    if (width) Object.assign(spec.layout, { width: width, height: PAPER_HEIGHT, autosize: false });
    try {
      if (!place.data) place.textContent = "";
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

  function drawAll(width) {
    places.forEach((place) => draw(place, width));
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
