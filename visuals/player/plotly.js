// plotly.js of our own version, loaded once it is needed.

let plotly = null;
function loadPlotly(address) {
  plotly ??= window.Plotly ? Promise.resolve() : new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = address;
    script.onload = resolve;
    script.onerror = () => reject(new Error("plotly.js did not load"));
    document.head.append(script);
  });
  return plotly;
}
