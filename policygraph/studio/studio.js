"use strict";
// Forms and links that compute say so: the page that they lead to may take minutes.
const working = document.getElementById("working");
let waiting;
const wait = () => {
  waiting = setTimeout(() => {
    working.textContent = "Computing. A long search ends by itself after a few minutes; the page changes then.";
  }, 400);
};
for (const form of document.querySelectorAll("form")) {
  form.addEventListener("submit", () => {
    // Confirming twice is one release, but nobody should wonder.
    for (const button of form.querySelectorAll("button")) button.setAttribute("aria-busy", "true");
    wait();
  });
}
for (const link of document.querySelectorAll("a[data-slow]")) link.addEventListener("click", wait);
// Back in a page that the browser kept.
addEventListener("pageshow", () => {
  clearTimeout(waiting);
  working.textContent = "";
  for (const button of document.querySelectorAll("button")) button.removeAttribute("aria-busy");
});
// What is ticked takes effect at once; without this script a button does it. The page comes back where it was.
for (const form of document.querySelectorAll("form[data-live]")) {
  const kept = sessionStorage.getItem("place");
  sessionStorage.removeItem("place");
  if (kept) {
    const { height, name, value } = JSON.parse(kept);
    const same = [...form.elements].find((each) => each.name === name && (each.type === "text" || each.value === value));
    if (same) same.focus({ preventScroll: true });
    scrollTo(0, height);
  }
  form.addEventListener("change", ({ target: { name, value } }) => {
    sessionStorage.setItem("place", JSON.stringify({ height: scrollY, name, value }));
    form.requestSubmit();
  });
}
