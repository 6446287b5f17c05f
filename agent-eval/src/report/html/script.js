"use strict";
// Shows the cases that the filters let through; j and k go to the next and the previous one.
(() => {
  const form = document.querySelector(".tools form");
  const count = form.querySelector("output");
  const none = document.querySelector(".none");
  const cases = [...document.querySelectorAll(".case")].map((element) => ({
    element,
    words: element.textContent.toLowerCase(),
    tags: element.dataset.tags.split("\n"),
  }));

  function filter() {
    const { q, verdict, set, tag } = Object.fromEntries(new FormData(form));
    let shown = 0;
    for (const { element, words, tags } of cases) {
      const visible =
        (!q || words.includes(q.toLowerCase())) &&
        (!verdict || element.dataset.verdict === verdict) &&
        (!set || element.dataset.set === set) &&
        (!tag || tags.includes(tag));
      element.hidden = !visible;
      shown += visible;
    }
    none.hidden = shown > 0;
    count.textContent = `${shown} of ${cases.length} cases`;
  }

  document.addEventListener("keydown", (event) => {
    const step = { j: 1, k: -1 }[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
    const rows = [...document.querySelectorAll(".case:not([hidden]) > summary")];
    const at = rows.indexOf(document.activeElement.closest(".case")?.querySelector("summary"));
    const next = rows[at < 0 ? 0 : Math.min(Math.max(at + step, 0), rows.length - 1)];
    next?.focus();
    next?.scrollIntoView({ block: "nearest" });
  });
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  filter();
})();
