// A picture in squares, four by four, that are buttons: arrow keys go from one to the next.

const ROW = 4;
const COUNT = ROW * ROW;
const HEADER = 1078; // bytes of a bitmap before its pixels

const placeOf = (square) => `row ${Math.floor(square / ROW) + 1}, column ${(square % ROW) + 1}`;
const pixelsOf = (picture) => Array.from(atob(picture.split(",")[1]).slice(HEADER), (letter) => letter.charCodeAt(0));
const inRows = (numbers, width) => range(numbers.length / width).map((row) => numbers.slice(row * width, (row + 1) * width));

// squares: of each, the attributes of its button and what follows its place in words.
function gridHTML(label, picture, squares, sort = "") {
  const buttons = squares.map(([attributes, more = ""], i) => button(`${attributes} aria-label="${placeOf(i)}${more}" ` +
    `style="--r: ${Math.floor(i / ROW)}; --c: ${i % ROW}"`, ""));
  return `<div class="grid ${sort}" role="group" aria-label="${label}" style="--picture: url(${picture})">${buttons.join("")}</div>`;
}

// One square is a stop of the tab key. back: what Backspace does.
function walk(board, back = () => {}) {
  const squares = () => [...board.querySelectorAll(".grid button")];
  const stop = (at) => squares().forEach((square, i) => { square.tabIndex = i === at ? 0 : -1; });
  stop(0);
  board.addEventListener("focusin", ({ target }) => stop(squares().indexOf(target)));
  board.addEventListener("keydown", (event) => {
    const at = squares().indexOf(event.target);
    const [row, column] = [Math.floor(at / ROW), at % ROW];
    const to = {
      ArrowUp: [row - 1, column], ArrowDown: [row + 1, column], ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1],
      Home: [row, 0], End: [row, ROW - 1],
    }[event.key];
    if (event.key === "Backspace") back();
    if (!to && event.key !== "Backspace") return;
    event.preventDefault();
    if (!to) return;
    const [down, right] = to.map((place) => within(0, place, ROW - 1));
    squares()[down * ROW + right].focus();
  });
}
