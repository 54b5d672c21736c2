// SPDX-License-Identifier: Apache-2.0
// A button over the picture: viser's own buttons are gone while the panel is folded. It says when nobody hears it.
(() => {
  document.getElementById("emergency-stop")?.remove();
  const stop = document.createElement("button");
  Object.assign(stop, {id: "emergency-stop", title: "$hint"});
  stop.style.cssText = `position: fixed; top: 10px; left: max(10px, 50vw - 6em); width: 12em; height: 3em;
    z-index: 1000; font: 600 14px sans-serif; color: white; border: 3px solid #ffd600; cursor: pointer`;
  stop.onclick = () => document.documentElement.dispatchEvent(
    new KeyboardEvent("keydown", {key: "Escape", code: "Escape", bubbles: true}));
  document.body.append(stop);

  const show = (heard) => {
    stop.textContent = heard ? "$label" : "$lost";
    stop.style.background = heard ? "#c62828" : "#616161";
  };
  let last = 0;
  window.pkmBeat = () => { last = performance.now(); show(true); };
  clearInterval(window.pkmWatch);
  window.pkmWatch = setInterval(() => show(performance.now() - last < $patience), 500);
  window.pkmBeat();

  // In a field or a list, viser leaves the key to that: it is left, and the drives stop
  document.removeEventListener("keydown", window.pkmLeave, true);
  window.pkmLeave = (event) => {
    if (event.key === "Escape" && event.isTrusted && event.target.matches("input, textarea"))
      setTimeout(() => { event.target.blur(); stop.click(); });
  };
  document.addEventListener("keydown", window.pkmLeave, true);
})()
