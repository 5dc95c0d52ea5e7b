(function () {
  "use strict";
  var root = document.documentElement;
  var stored = JSON.parse(document.getElementById("drawings").textContent);
  var prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
  var config = {
    responsive: true, displaylogo: false, displayModeBar: "hover",
    modeBarButtons: [["toImage"], ["zoom2d", "pan2d", "resetScale2d"]]
  };
  var printWidth = 680;

  function isDark() {
    return root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches;
  }

  /* The figures carry light colours; each has one dark counterpart. Always a copy: plotly keeps what it is given. */
  function themed(value, dark) {
    if (typeof value === "string") { return dark && stored.dark[value] || value; }
    if (Array.isArray(value)) { return value.map(function (item) { return themed(item, dark); }); }
    if (value === null || typeof value !== "object") { return value; }
    var copy = {};
    Object.keys(value).forEach(function (key) { copy[key] = themed(value[key], dark); });
    return copy;
  }

  function draw(id, printed) {
    var chart = stored.charts[id];
    var select = document.querySelector('select[data-chart="' + id + '"]');
    var figure = chart.figure || chart.choices[select.selectedIndex].figure;
    var copy = themed(figure, isDark() && !printed);
    if (printed) { copy.layout.width = printWidth; copy.layout.height = 300; }
    return window.Plotly.react(document.getElementById(id), copy.data, copy.layout, config);
  }

  function drawAll(printed) {
    return Promise.all(Object.keys(stored.charts).map(function (id) { return draw(id, printed); }));
  }

  document.querySelectorAll("select[data-chart]").forEach(function (select) {
    select.addEventListener("change", function () { draw(select.dataset.chart, false); });
  });
  document.querySelector(".theme").addEventListener("click", function () {
    root.dataset.theme = isDark() ? "light" : "dark";
    drawAll(false);
  });
  prefersDark.addEventListener("change", function () { drawAll(false); });

  var opened = [];
  window.addEventListener("beforeprint", function () {
    opened = Array.from(document.querySelectorAll("details:not([open]):not(.job)"));
    opened.forEach(function (details) { details.open = true; });
    drawAll(true);
  });
  window.addEventListener("afterprint", function () {
    opened.forEach(function (details) { details.open = false; });
    drawAll(false);
  });

  drawAll(false).then(function () { root.dataset.drawn = String(document.querySelectorAll(".plot .main-svg").length); });
}());
