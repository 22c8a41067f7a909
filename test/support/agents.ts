/** Fields of agents, good and bad, for tests of both faces. */

export const PROMPT_AGENT = {
  name: "helper",
  title: "Helper",
  systemPrompt: "You help.",
  baseModel: "acme/chat",
} as const;

/** Fields that every face refuses in a prompt agent: a description, the field as REST names it, and its value. */
export const BAD_FIELDS: readonly (readonly [string, string, unknown])[] = [
  ["an empty name", "name", ""],
  ["a name that is too long", "name", "a".repeat(121)],
  ["a name with a space", "name", "a b"],
  ["a name with an emoji", "name", "agent🙂"],
  ["a name with a slash", "name", "a/b"],
  ["an empty title", "title", ""],
  ["a title that is too long", "title", "t".repeat(43)],
  ["a description that is too long", "description", "d".repeat(1001)],
  ["an empty system prompt", "systemPrompt", ""],
  ["a system prompt that is too long", "systemPrompt", "s".repeat(8001)],
  ["a system prompt with a NUL character", "systemPrompt", "a\0b"],
  ["no base model", "baseModel", ""],
  ["a base model whose id is too long", "baseModel", "b".repeat(254)],
  ["an unknown base model", "baseModel", "acme/none"],
  ["a base model of another modality", "baseModel", "acme/image"],
];

/** As above; GraphQL spells the values of these as its enums' names. */
export const BAD_LISTS: readonly (readonly [string, string, readonly string[]])[] = [
  ["a server twice", "mcpServers", ["ffmpeg", "sluice", "ffmpeg"]],
  ["an unknown server", "mcpServers", ["github"]],
  ["seven servers", "mcpServers", ["ffmpeg", "computer", "sluice", "search", "integrations", "ada", "ada"]],
  ["a safety feature twice", "requiredSafetyFeatures", ["privacy", "privacy"]],
  ["an unknown safety feature", "requiredSafetyFeatures", ["gambling"]],
  ["six safety features", "requiredSafetyFeatures", ["privacy", "secrets", "sexual", "violence", "shield", "shield"]],
];

/** Each bound itself. */
export const LARGEST_AGENT = {
  name: "N.a_m:e-1".padEnd(120, "x"),
  title: "t".repeat(42),
  description: "d".repeat(1000),
  systemPrompt: "s".repeat(8000),
  baseModel: "acme/chat",
  mcpServers: ["ffmpeg", "computer", "sluice", "search", "integrations", "ada"],
  requiredSafetyFeatures: ["privacy", "secrets", "sexual", "violence", "shield"],
} as const;
