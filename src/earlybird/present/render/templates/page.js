// Inflates the figures and plotly, draws in the colours of the style sheet, and redraws when the theme changes and for
// printing.
(function () {
  "use strict";
  const root = document.documentElement;
  let specs = null; // the figures, once they and plotly are inflated
  const places = Array.from(document.querySelectorAll("[data-figure]"));
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const touch = window.matchMedia("(pointer: coarse)").matches;
  const config = {
    responsive: true,
    displayModeBar: false, // no buttons: dragging zooms, a double click resets
  };
  const PAPER_WIDTH = 660;
  const PAPER_HEIGHT = 280; // two figures with their legends on a page
  const AXIS_HEIGHT = 56; // pixels of the tick labels and the title of the x axis
  const MARGIN = 12; // pixels below a figure without a legend
  const LEGEND_LINE = 22; // pixels, at least those of a line in the legend
  const LEGEND_SYMBOL = 60; // pixels of a symbol in the legend with the space around the entry
  const LEGEND_FONT = "12px";
  const ruler = document.createElement("canvas").getContext("2d");

  // Four bytes of every five digits of base 85, as Python's b85encode writes them.
  function decoded(written) {
    const missing = (5 - written.length % 5) % 5;
    const text = written + "~".repeat(missing);
    const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
    const value = new Uint8Array(128);
    Array.from(digits).forEach((digit, k) => { value[digit.charCodeAt(0)] = k; });
    const bytes = new DataView(new ArrayBuffer(text.length / 5 * 4));
    for (let k = 0; k < text.length; k += 5) {
      let word = 0;
      for (let j = k; j < k + 5; j++) word = word * 85 + value[text.charCodeAt(j)];
      bytes.setUint32(k / 5 * 4, word);
    }
    return bytes.buffer.slice(0, bytes.byteLength - missing);
  }

  async function inflated(id) {
    const bytes = decoded(document.getElementById(id).textContent);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  }

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

  // Keeps the visibility chosen in the legend when a figure is redrawn.
  function keepChoices(place, data) {
    (place.data || []).forEach((trace, k) => { if (trace.visible !== undefined) data[k].visible = trace.visible; });
  }

  // Breaks the names in the legend into lines that are not cut at the edge of the figure; returns their number.
  function breakNames(data, width, font) {
    ruler.font = LEGEND_FONT + " " + font;
    const fits = (text) => ruler.measureText(text).width <= width - LEGEND_SYMBOL;
    let count = 0;
    data.filter((trace) => trace.name && trace.showlegend !== false).forEach((trace) => {
      const lines = [""];
      const add = (part) => {
        const longer = lines[lines.length - 1] + part;
        if (fits(longer.trimEnd())) lines[lines.length - 1] = longer;
        else if (fits(part.trimEnd()) || part.length === 1) lines.push(part);
        else Array.from(part).forEach(add);
      };
      trace.name.split(/(?<=[ /_-])/).forEach(add);
      trace.name = lines.filter((line) => line).join("<br>");
      count += lines.length;
    });
    return count;
  }

  // Adds the height of the legend, which is known once it is drawn, below the axis title.
  function fitLegend(place, height) {
    const legend = place.querySelector(".legend .bg");
    const room = legend ? Math.ceil(legend.getBoundingClientRect().height) : 0;
    return Plotly.relayout(place, { height: height + room, "margin.b": room ? AXIS_HEIGHT + room : MARGIN });
  }

  function draw(place, width) {
    const spec = coloured(specs[place.dataset.figure], getComputedStyle(root));
    keepChoices(place, spec.data);
    if (touch) spec.layout.dragmode = false; // touching a figure scrolls the page
    const lines = breakNames(spec.data, width || place.clientWidth, spec.layout.font.family);
    if (width) Object.assign(spec.layout, { width: width, height: PAPER_HEIGHT, autosize: false });
    const height = spec.layout.height;
    spec.layout.height += LEGEND_LINE * lines; // the most that the legend needs
    spec.layout.margin.b = AXIS_HEIGHT + LEGEND_LINE * lines;
    try {
      if (!place.data) place.textContent = "";
      place.style.minHeight = 0;
      Promise.resolve(Plotly.react(place, spec.data, spec.layout, config)).then(() => fitLegend(place, height)).then(
        () => place.setAttribute("data-drawn", "yes"),
        (error) => showError(place, error));
    } catch (error) {
      showError(place, error);
    }
  }

  function showError(place, error) {
    place.setAttribute("data-drawn", "no");
    place.textContent = "This figure could not be drawn: " + error + ". Its numbers are in the tables below.";
  }

  // Hidden figures have no width; they are drawn when they are selected.
  function drawAll(width) {
    if (!specs) return;
    places.filter((place) => !place.closest("figure").hidden).forEach((place) => draw(place, width));
  }

  function isDark() {
    return root.dataset.theme ? root.dataset.theme === "dark" : dark.matches;
  }

  const button = document.getElementById("theme");
  function updateButton() {
    button.textContent = isDark() ? "Light" : "Dark";
  }
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    updateButton();
    drawAll();
  });
  dark.addEventListener("change", () => { updateButton(); drawAll(); });

  // Shows the figures of a chapter whose choice agrees with all selectors that it contains.
  function choose(form, changed) {
    const figures = Array.from(form.parentNode.querySelectorAll("figure[data-choice]"));
    const selects = Array.from(form.elements);
    const offered = figures.map((figure) => JSON.parse(figure.dataset.choice));
    const complete = offered.filter((choice) => selects.every((select) => select.name in choice));
    const numMatches = (choice) => selects.filter((select) => choice[select.name] === select.value).length;
    // Not every combination was measured: keep the selector changed last, and match the others as far as possible.
    const open = complete.filter((choice) => !changed || choice[changed.name] === changed.value);
    if (!open.length) open.push(...complete); // a value without figures
    const chosen = changed ? open.reduce((best, choice) => (numMatches(choice) > numMatches(best) ? choice : best)) : open[0];
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

  async function start() {
    if (!places.length) return;
    if (!("DecompressionStream" in window)) {
      document.getElementById("no-figures").hidden = false;
      places.forEach((place) => place.remove());
      return;
    }
    const [figures, plotly] = await Promise.all(["figures", "plotly"].map(inflated));
    const script = document.createElement("script");
    script.textContent = plotly;
    document.head.append(script);
    specs = JSON.parse(figures);
    drawAll();
  }

  updateButton();
  start();
})();
