// The report of a check, in JupyterLab: a button that gives the exercise's stub back. It needs no kernel, and where there
// is no editor to write into (in the book, in VS Code) there is no button.
for (const report of document.querySelectorAll(".cu-report[data-stub]:not([data-ready])")) {
  report.dataset.ready = "true";
  const { stub, defines, name } = report.dataset;
  const cell = report.closest(".jp-CodeCell");
  const editor = (cell) => { // CodeMirror's view of a cell: `cmView` or, from 6.39 on, `cmTile`
    const content = cell.querySelector(".cm-content");
    return (content?.cmView ?? content?.cmTile)?.view;
  };
  if (!cell || !editor(cell)) continue;
  const defined = new RegExp(`^(async def|class|def)\\s+${defines}\\b|^${defines}\\s*=[^=]`, "m");
  const row = report.appendChild(Object.assign(document.createElement("div"), { className: "over" }));
  const button = row.appendChild(Object.assign(document.createElement("button"), { type: "button", textContent: "Start over" }));
  const message = row.appendChild(Object.assign(document.createElement("p"), { ariaLive: "polite" }));
  button.dataset.lmSuppressShortcuts = "true"; // its keys are not for Lab
  button.addEventListener("click", () => {
    let at = cell;
    while (at && !(editor(at) && defined.test(editor(at).state.doc.toString()))) at = at.previousElementSibling;
    if (at) editor(at).dispatch({ changes: { from: 0, to: editor(at).state.doc.length, insert: stub } });
    message.textContent = at
      ? `The cell above is the stub again. To get your answer back, press Ctrl + Z there, or run cu.checks.${name}.answers() in a new cell.`
      : `Your cell is not in sight. Run this in a new cell: cu.checks.${name}.start_over()`;
  });
}
