// Records script errors and refused requests as attributes of the document root.
(function () {
  "use strict";
  const root = document.documentElement;
  function record(name, text) {
    root.setAttribute(name, (root.getAttribute(name) || "") + text + "\n");
  }
  window.addEventListener("error", (event) => record("data-errors", event.message || "resource error"));
  window.addEventListener("unhandledrejection", (event) => record("data-errors", String(event.reason)));
  document.addEventListener("securitypolicyviolation", (event) =>
    record("data-violations", event.violatedDirective + " " + event.blockedURI));
})();
