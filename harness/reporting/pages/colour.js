// Colours of figures. Blue for more and orange for less: kept apart by every common colour blindness.
const THEMES = {
  light: {
    back: "#ffffff", ink: "#16191d", soft: "#565d66", line: "#c9ced6", faint: "#eceef1", accent: "#0b57a4",
    diverging: ["#7a3100", "#cc6a17", "#f5b57c", "#f3f3f2", "#9cc4ea", "#2f7dc6", "#0a3a75"],
    sequential: ["#f6f6f4", "#cfe3dc", "#8fc1b5", "#47958f", "#15605f"], mark: "#d1420a",
  },
  dark: {
    back: "#14171b", ink: "#eceff3", soft: "#a5adb8", line: "#4a515c", faint: "#252a30", accent: "#8fc2ff",
    diverging: ["#ffa04d", "#d06c14", "#71400f", "#2b3037", "#174876", "#2b7bcb", "#6ab8ff"],
    sequential: ["#20252a", "#234744", "#2f7670", "#55ada3", "#a9e6da"], mark: "#ff8a4c",
  },
};

const channels = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255);
const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
const curved = (c) => (c <= 0.0031308 ? 12.92 * c : 1.055 * c ** (1 / 2.4) - 0.055);

function mixed(stops, at) {
  const place = Math.min(Math.max(at, 0), 1) * (stops.length - 1);
  const i = Math.min(Math.floor(place), stops.length - 2);
  const [a, b] = [channels(stops[i]), channels(stops[i + 1])];
  const hex = a.map((c, k) => {
    const light = linear(c) + (place - i) * (linear(b[k]) - linear(c));
    return Math.round(255 * curved(light)).toString(16).padStart(2, "0");
  });
  return `#${hex.join("")}`;
}

const diverging = (theme, value, end) => mixed(theme.diverging, end > 0 ? 0.5 + value / (2 * end) : 0.5);
const sequential = (theme, share) => mixed(theme.sequential, share);

function inkOn(colour) {
  const [r, g, b] = channels(colour).map(linear);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000000" : "#ffffff";
}
