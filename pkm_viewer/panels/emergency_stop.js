// SPDX-License-Identifier: Apache-2.0
// A button over the picture: viser's own buttons are gone while the panel is folded.
(() => {
  document.getElementById("emergency-stop")?.remove();
  const stop = document.createElement("button");
  Object.assign(stop, {id: "emergency-stop", textContent: "$label", title: "$hint"});
  stop.style.cssText = `position: fixed; top: 10px; left: max(10px, 50vw - 6em); width: 12em; height: 3em;
    z-index: 1000; font: 600 14px sans-serif; color: white; background: #c62828;
    border: 3px solid #ffd600; cursor: pointer`;
  stop.onclick = () => document.documentElement.dispatchEvent(
    new KeyboardEvent("keydown", {key: "Escape", code: "Escape", bubbles: true}));
  document.body.append(stop);
})()
