"use strict";
(() => {
  const calls = [...document.querySelectorAll("details.call")];
  const find = document.getElementById("find");
  const kind = document.getElementById("kind");
  const open = document.getElementById("open");
  const none = document.getElementById("none");
  const texts = new Map(calls.map((call) => [call, call.textContent.toLowerCase()]));
  const visible = () => calls.filter((call) => !call.hidden);

  const filter = () => {
    const wanted = find.value.trim().toLowerCase();
    for (const call of calls) {
      const of_kind = kind.value === "" || call.dataset.kinds.split(" ").includes(kind.value);
      call.hidden = !(of_kind && (wanted === "" || texts.get(call).includes(wanted)));
    }
    for (const session of document.querySelectorAll(".session")) {
      const own = [...session.querySelectorAll("details.call")];
      session.hidden = own.length > 0 && own.every((call) => call.hidden);
    }
    none.hidden = calls.length === 0 || visible().length > 0;
  };
  find.addEventListener("input", filter);
  kind.addEventListener("change", filter);
  document.querySelector("form.tools").addEventListener("submit", (event) => event.preventDefault());

  open.addEventListener("click", () => {
    const shown = visible();
    const all = shown.every((call) => call.open);
    for (const call of shown) call.open = !all;
    open.textContent = all ? "Open all" : "Close all";
  });

  document.getElementById("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  // What is closed is not printed.
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const details of closed) details.open = true;
  });
  addEventListener("afterprint", () => {
    for (const details of closed) details.open = false;
    closed = [];
  });

  const follow = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target instanceof HTMLDetailsElement) {
      target.hidden = false;
      target.open = true;
      target.querySelector("summary").focus();
    }
  };
  addEventListener("hashchange", follow);
  follow();

  const go = (step) => {
    const summaries = visible().map((call) => call.querySelector("summary"));
    const at = summaries.indexOf(document.activeElement);
    const next = at < 0 ? (step > 0 ? 0 : summaries.length - 1) : at + step;
    const summary = summaries[Math.max(0, Math.min(summaries.length - 1, next))];
    if (summary) {
      summary.focus();
      summary.scrollIntoView({ block: "nearest" });
    }
  };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.matches("input, select, textarea")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    switch (event.key) {
      case "j": go(1); break;
      case "k": go(-1); break;
      case "/": find.focus(); break;
      case "s": kind.value = kind.value === "stopped" ? "" : "stopped"; filter(); break;
      default: return;
    }
    event.preventDefault();
  });
})();
