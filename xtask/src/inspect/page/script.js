"use strict";
// Shows the events that the filters let through. The filters are in the address, so a view can be kept and shared.
(() => {
  const form = document.querySelector(".tools");
  const count = form.querySelector("output");
  const none = document.querySelector(".none");
  const groups = [...document.querySelectorAll(".group")];
  const lists = ["author", "kind", "in"];
  const events = [...document.querySelectorAll(".event")].map((element) => ({
    element,
    tags: JSON.parse(element.dataset.tags),
    repeats: element.classList.contains("repeats"),
    words: undefined,
  }));

  function shows(event, wanted) {
    if (lists.some((list) => wanted[list] && !event.tags[list].includes(wanted[list]))) return false;
    if (wanted.repeats && !event.repeats) return false;
    if (!wanted.q) return true;
    event.words ??= event.element.textContent.toLowerCase();
    return event.words.includes(wanted.q.toLowerCase());
  }

  function filter() {
    const wanted = Object.fromEntries(new FormData(form));
    let shown = 0;
    for (const event of events) {
      const visible = shows(event, wanted);
      event.element.hidden = !visible;
      shown += visible;
    }
    for (const group of groups) group.hidden = !group.querySelector(".event:not([hidden])");
    none.hidden = shown > 0;
    count.textContent = `${shown} of ${events.length} events`;
  }

  // An address names either filters, or an event.
  function read() {
    const hash = location.hash.slice(1);
    const target = /^e\d+$/.test(hash) && document.getElementById(hash);
    if (target) {
      if (target.hidden) {
        form.reset();
        filter();
      }
      reveal(target);
      return;
    }
    form.reset();
    for (const [name, value] of new URLSearchParams(hash)) {
      const field = form.elements.namedItem(name);
      if (field?.type === "checkbox") field.checked = Boolean(value);
      else if (field) field.value = value;
    }
    filter();
  }

  function write() {
    const wanted = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
    history.replaceState(null, "", `#${wanted}`);
    filter();
  }

  function clear() {
    form.reset();
    write();
  }

  function reveal(element) {
    for (let at = element.parentElement; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    element.focus({ preventScroll: true });
    element.scrollIntoView({ block: "nearest" });
  }

  function step(by) {
    const shown = events.map((event) => event.element).filter((element) => !element.hidden);
    const at = shown.indexOf(document.activeElement?.closest(".event"));
    const next = at < 0 ? (by > 0 ? 0 : shown.length - 1) : at + by;
    if (shown[next]) reveal(shown[next]);
  }

  function fold(button) {
    const iterations = groups.filter((group) => group.tagName === "DETAILS");
    const open = iterations.every((group) => !group.open);
    for (const group of iterations) group.open = open;
    button.textContent = open ? "Fold all" : "Unfold all";
  }

  function theme(button) {
    const themes = ["auto", "light", "dark"];
    const root = document.documentElement;
    const next = themes[(themes.indexOf(root.dataset.theme ?? "auto") + 1) % themes.length];
    root.dataset.theme = next;
    button.textContent = `Theme: ${next}`;
  }

  form.addEventListener("input", write);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-do]");
    if (button) ({ clear, fold, theme })[button.dataset.do](button);
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") {
      document.activeElement?.blur();
      clear();
      return;
    }
    if (event.target.closest("input, select, textarea")) return;
    if (event.key === "/") form.elements.q.focus();
    else if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
    else if (event.key === "e") {
      const json = document.activeElement?.closest(".event")?.querySelector(".json");
      if (json) json.open = !json.open;
      else return;
    } else return;
    event.preventDefault();
  });
  addEventListener("hashchange", read);
  form.hidden = false;
  filter();
  read();
})();
