"use strict";
// Shows the cases that the filters let through.
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

  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  filter();
})();
