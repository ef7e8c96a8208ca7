"use strict";
// What is ticked takes effect at once; without this script a button does it.
for (const form of document.querySelectorAll("form[data-live]")) {
  form.addEventListener("change", () => form.requestSubmit());
}
// Confirming twice is one release, but nobody should wonder.
for (const form of document.querySelectorAll("form")) {
  form.addEventListener("submit", () => {
    for (const button of form.querySelectorAll("button")) button.setAttribute("aria-busy", "true");
  });
}
