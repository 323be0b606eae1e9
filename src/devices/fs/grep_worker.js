// Matches lines in a thread of its own: a pattern that never comes to an end is ended with its thread.
self.onmessage = ({ data: { source, flags, texts } }) => {
  try {
    const pattern = new RegExp(source, flags);
    self.postMessage({
      found: texts.map((text) => {
        const numbers = [];
        text.split("\n").forEach((line, index) => {
          if (pattern.test(line)) numbers.push(index);
        });
        return numbers;
      }),
    });
  } catch (thrown) {
    self.postMessage({ fault: thrown instanceof Error ? thrown.message : String(thrown) });
  }
};
