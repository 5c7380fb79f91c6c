"""Contrast of a page's texts with what is behind them, as WCAG 2 computes it."""

LOW_CONTRAST = """
const channels = c => c.match(/[\\d.]+/g).map(Number);
const lum = ([r, g, b]) => [r, g, b].map(v => v / 255).map(
  v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4
).reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
const back = e => {
  for (; e; e = e.parentElement) {
    const c = channels(getComputedStyle(e).backgroundColor);
    if (c.length === 3 || c[3] > .8) return c;
  }
  return [255, 255, 255];
};
return [...document.querySelectorAll("body *")].filter(e =>
  [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())
  && !e.closest(".unseen, .skip, script, noscript, svg, option, [hidden]")
).map(e => {
  const a = lum(channels(getComputedStyle(e).color)), b = lum(back(e));
  return [e.textContent.trim(), (Math.max(a, b) + .05) / (Math.min(a, b) + .05)];
}).filter(([, ratio]) => ratio < 4.5);
"""
"""A script that returns the texts whose contrast is below 4.5, each with its ratio."""
