// SPDX-License-Identifier: Apache-2.0
// viser's sheet starts unfolded, over the lower part of the robot's picture.
(() => {
  if (window.sheetWasFolded) return;  // a page that connects anew stays as it is
  window.sheetWasFolded = true;
  const narrow = matchMedia("(max-width: 36em)");  // where viser makes a sheet of its panels
  const fold = tries => {
    if (!narrow.matches) return;
    const sheet = document.querySelector('div[style*="position: fixed"][style*="max-height: 60%"]');
    if (sheet) sheet.querySelector('[style*="cursor: pointer"]').click();
    else if (tries) setTimeout(fold, 50, tries - 1);
  };
  fold(100);
  narrow.addEventListener("change", () => fold(100));
})()
