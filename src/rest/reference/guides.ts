/** The documentation as Markdown, for programs that read it: pages below `/docs`, and their list at `/llms.txt` (llmstxt.org). */
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { notFound } from "../../errors.js";

const FOLDER = fileURLToPath(new URL(import.meta.url.endsWith(".ts") ? "../../../docs/" : "./docs/", import.meta.url));

/** Pages for callers and operators, below `docs`. */
export const GUIDES: ReadonlyMap<string, readonly string[]> = new Map([
  [
    "Guides",
    [
      "graphql.md",
      "coding-agents.md",
      "mcp.md",
      "media.md",
      "safety.md",
      "sandbox-models.md",
      "publish-a-model.md",
      "write-an-agent.md",
      "authorization.md",
      "connected-apps.md",
      "webhooks.md",
      "dashboard.md",
      "stability.md",
    ],
  ],
  [
    "Contract",
    [
      "spec/README.md",
      "spec/http.md",
      "spec/errors.md",
      "spec/limits.md",
      "spec/rate-limits.md",
      "spec/generation.md",
      "spec/chat.md",
      "spec/messages.md",
      "spec/gemini.md",
      "spec/images.md",
      "spec/video.md",
      "spec/audio.md",
      "spec/realtime.md",
      "spec/embeddings.md",
      "spec/moderations.md",
      "spec/models.md",
      "spec/routing.md",
      "spec/quotes.md",
      "spec/presets.md",
      "spec/usage-limits.md",
      "spec/vendor-keys.md",
      "spec/community-models.md",
      "spec/agents.md",
      "spec/mcp.md",
      "spec/graphql.md",
      "spec/accounts.md",
      "spec/sessions.md",
      "spec/keys.md",
      "spec/authorization.md",
      "spec/credits.md",
      "spec/top-ups.md",
      "spec/earnings.md",
      "spec/runs.md",
      "spec/usage.md",
      "spec/requests.md",
      "spec/webhooks.md",
      "spec/alerts.md",
      "spec/media.md",
      "spec/safety.md",
      "spec/connected-apps.md",
      "spec/outbound.md",
    ],
  ],
  ["Operating", ["operating.md", "adding-a-model.md", "security.md", "performance.md", "glossary.md"]],
]);

const NAMES: ReadonlySet<string> = new Set([...GUIDES.values()].flat());

/** `name`: below `docs`, such as `spec/chat.md`. Rejects with NOT_FOUND for a page that is not listed. */
export async function readGuide(name: string): Promise<Buffer> {
  if (!NAMES.has(name)) throw notFound("page");
  return readFile(FOLDER + name);
}

/** `baseUrl`: of the gateway, for absolute links. */
export async function listGuides(baseUrl: string): Promise<string> {
  const sections = [...GUIDES].map(async ([title, names]) => {
    const links = names.map(async (name) => `- [${titleOf(await readGuide(name))}](${baseUrl}/docs/${name})`);
    return `## ${title}\n\n${(await Promise.all(links)).join("\n")}\n`;
  });
  return [introduction(baseUrl), ...(await Promise.all(sections))].join("\n");
}

function titleOf(page: Buffer): string {
  const [first = ""] = page.toString("utf8", 0, 200).split("\n", 1);
  return first.replace(/^# /, "");
}

function introduction(baseUrl: string): string {
  return `# Sluice

> A gateway for generative AI: text, images, video, speech, music, transcriptions and embeddings through one key and one balance of prepaid
> credits. GraphQL first, with OpenAI-compatible and Anthropic-compatible REST.

- Base URL of OpenAI clients: ${baseUrl}/v1
- Base URL of Anthropic clients: ${baseUrl}
- GraphQL endpoint: ${baseUrl}/graphql
- MCP server: ${baseUrl}/mcp
- Credential: \`Authorization: Bearer <API key>\`
- Models and prices: ${baseUrl}/v1/models

## Contracts for programs

- [OpenAPI](${baseUrl}/openapi.json): every REST route
- [GraphQL schema](${baseUrl}/schema.graphql): every type and field
`;
}
