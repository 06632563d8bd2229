"use strict";
// Reads the values off the charts: a cursor that all charts of one axis share. Every point brings its place and its text.
(() => {
  const read = group => ({
    mark: group.querySelector(".mark"),
    points: group.dataset.points.split("\n").map(line => line.split("\t")),
  });
  const charts = [...document.querySelectorAll(".chart[data-axis]")].filter(card => card.querySelector("svg.plot")).map(card => ({
    card,
    svg: card.querySelector("svg.plot"),
    cursor: card.querySelector(".cursor"),
    at: card.querySelector(".at"),
    values: [...card.querySelectorAll(".legend output")],
    lines: [...card.querySelectorAll("g[data-points]")].map(read),
  }));
  const nearest = (points, x) => points.reduce((a, b) => (Math.abs(b[0] - x) < Math.abs(a[0] - x) ? b : a));

  const show = (chart, x) => {
    const found = chart.lines.map(line => nearest(line.points, x));
    const at = nearest(found, x);
    chart.card.classList.add("read");
    chart.cursor.setAttribute("x1", at[0]);
    chart.cursor.setAttribute("x2", at[0]);
    chart.at.textContent = at[2];
    found.forEach(([left, top, , value], n) => {
      const here = left === at[0];
      chart.values[n].textContent = here ? value : "";
      const mark = chart.lines[n].mark;
      if (mark) {
        mark.setAttribute("cx", left);
        mark.setAttribute("cy", here ? top : -100);
      }
    });
  };
  const hide = chart => {
    chart.card.classList.remove("read");
    chart.at.textContent = "";
    chart.values.forEach(value => { value.textContent = ""; });
  };

  for (const { card, svg } of charts) {
    const together = charts.filter(chart => chart.card.dataset.axis === card.dataset.axis);
    const move = event => {
      const box = svg.getBoundingClientRect();
      const x = (event.clientX - box.left) / box.width * svg.viewBox.baseVal.width;
      together.forEach(chart => show(chart, x));
    };
    svg.addEventListener("pointermove", move);
    svg.addEventListener("pointerdown", move);
    svg.addEventListener("pointerleave", () => together.forEach(hide));
  }
})();
