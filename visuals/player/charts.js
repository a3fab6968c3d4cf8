// Figures and tables of a benchmark, drawn anew as it goes on.

const charts = element.querySelector("#charts");

async function draw() {
  const { figures = [], tables = "", conditions = "" } = JSON.parse(props.value || "{}");
  element.querySelector(".tables").innerHTML = tables;
  element.querySelector(".conditions").textContent = conditions;
  if (figures.length) await loadPlotly(props.plotly);
  const ink = getComputedStyle(element).color;
  while (charts.children.length > figures.length) charts.lastChild.remove();
  // All of them first: a chart takes the width that it finds.
  while (charts.children.length < figures.length) charts.append(document.createElement("div"));
  figures.forEach(({ data, layout }, place) => {
    const own = { ...layout, font: { ...layout.font, color: ink } };
    window.Plotly.react(charts.children[place], data, own, { responsive: true, displaylogo: false });
  });
}

watch("value", draw);
draw();
