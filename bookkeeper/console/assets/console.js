// Two things: a page is fetched again while it is looked at, and what changes something is asked for, and sent with a token.
"use strict";
(() => {
  const dialog = document.getElementById("ask");
  const stale = document.getElementById("stale");
  let timer = 0;

  const busy = () => document.hidden || dialog.open || !window.getSelection().isCollapsed;

  async function refresh() {
    if (!busy()) {
      try {
        const reply = await fetch(window.location.href, { cache: "no-store" });
        const found = new DOMParser().parseFromString(await reply.text(), "text/html");
        const main = found.querySelector("main");
        if (main !== null && !busy()) {
          const places = [...document.querySelectorAll(".table, figure")].map((each) => each.scrollLeft);
          document.querySelector("main").replaceWith(document.adoptNode(main));
          document.querySelectorAll(".table, figure").forEach((each, at) => { each.scrollLeft = places[at] || 0; });
          document.body.dataset.refreshS = found.body.dataset.refreshS || "";
        }
        stale.hidden = true;
      } catch (error) {
        stale.hidden = false;
      }
    }
    again();
  }

  function again() {
    const seconds = Number(document.body.dataset.refreshS);
    window.clearTimeout(timer);
    if (seconds > 0) timer = window.setTimeout(refresh, seconds * 1000);
  }

  let asked = null;

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button === null) return;
    if (button.dataset.action) {
      asked = button.dataset;
      dialog.querySelector("h2").textContent = asked.label;
      dialog.querySelector(".says").textContent = asked.says;
      dialog.querySelector(".target").textContent = asked.target;
      dialog.querySelector(".answer").textContent = "";
      dialog.querySelector("form").reset();
      dialog.showModal();
    } else if (button.value === "cancel") {
      dialog.close();
    }
  });

  dialog.querySelector("form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const fields = new FormData(event.target);
    const answer = dialog.querySelector(".answer");
    const body = { target: asked.target, confirm: fields.get("confirm"), ...JSON.parse(asked.params) };
    answer.textContent = "…";
    try {
      const reply = await fetch(`/actions/${asked.action}`, {
        method: "POST",
        headers: { Authorization: `Bearer ${fields.get("token")}`, "Content-Type": "application/json" },
        body: JSON.stringify(body),
      });
      answer.textContent = await reply.text();
      answer.className = reply.ok ? "answer good" : "answer bad";
    } catch (error) {
      answer.textContent = "The console does not answer: it is not known whether this was done.";
      answer.className = "answer bad";
    }
    event.target.elements.token.value = "";
  });

  dialog.addEventListener("close", () => { asked = null; refresh(); });
  document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
  again();
})();
