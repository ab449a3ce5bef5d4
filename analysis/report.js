// Clicking a heading sorts the table: ascending, descending, then the original order.
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  const original = [...body.rows];
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = heading.textContent;
    heading.replaceChildren(button);
    button.addEventListener("click", () => {
      const before = heading.getAttribute("aria-sort");
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      if (before === "descending") {
        original.forEach((row) => body.append(row));
        return;
      }
      const sign = before === "ascending" ? -1 : 1;
      heading.setAttribute("aria-sort", sign === 1 ? "ascending" : "descending");
      const key = (row) => {
        const cell = row.cells[column];
        if (cell.dataset.sort !== undefined) return Number(cell.dataset.sort);
        const text = cell.textContent.trim();
        return text === "" || text === "–" ? null : text;
      };
      const compare = (a, b) => {
        const [x, y] = [key(a), key(b)];
        if (x === null || y === null) return (x === null) - (y === null); // missing values stay at the bottom
        if (typeof x === "number" && typeof y === "number") return sign * (x - y);
        return sign * String(x).localeCompare(String(y), undefined, { numeric: true });
      };
      [...original].sort(compare).forEach((row) => body.append(row));
    });
  });
}
