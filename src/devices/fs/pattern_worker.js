// Matches lines and paths in a thread of its own: a pattern that never comes to an end is ended with its thread.
import { matchesGlob } from "node:path";

function linesThatFit({ source, flags, texts }) {
  const pattern = new RegExp(source, flags);
  return texts.map((text) => {
    const numbers = [];
    text.split("\n").forEach((line, index) => {
      if (pattern.test(line)) numbers.push(index);
    });
    return numbers;
  });
}

self.onmessage = ({ data }) => {
  try {
    const found = "glob" in data
      ? data.paths.map((path) => matchesGlob(path, data.glob))
      : linesThatFit(data);
    self.postMessage({ found });
  } catch (thrown) {
    self.postMessage({ fault: thrown instanceof Error ? thrown.message : String(thrown) });
  }
};
