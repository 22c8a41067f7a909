/** Bodies of OpenAI's moderation format. */

const CATEGORIES = [
  "harassment",
  "harassment/threatening",
  "hate",
  "hate/threatening",
  "illicit",
  "illicit/violent",
  "self-harm",
  "sexual",
  "sexual/minors",
  "violence",
  "violence/graphic",
];

/** One result with these categories flagged, which may be others than OpenAI's. */
export function verdict(flagged: readonly string[]): Record<string, unknown> {
  const names = [...new Set([...CATEGORIES, ...flagged])];
  const each = <Value>(value: (name: string) => Value) => Object.fromEntries(names.map((name) => [name, value(name)]));
  return {
    flagged: flagged.length > 0,
    categories: each((name) => flagged.includes(name)),
    category_scores: each((name) => (flagged.includes(name) ? 0.9 : 0.01)),
    category_applied_input_types: each(() => ["text"]),
  };
}

export function moderation(results: readonly Record<string, unknown>[]): Record<string, unknown> {
  return { id: "modr-fake", model: "omni-moderation", results };
}
