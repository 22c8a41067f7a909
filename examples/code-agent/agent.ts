/**
 * A code agent that explains anything in one sentence. For the input "models", it lists the available text models.
 *
 * It runs in a new process for every request, without files, environment or network, except `sluice` and `mcp`. It can import files
 * of this repository.
 */
import { lastWords, say } from "./lib/responses.ts";
import settings from "./settings.json" with { type: "json" };
import type { Agent, ResponsesRequest } from "./sluice.d.ts";

const agent: Agent = async ({ request, sluice, mcp }) => {
  const asked: ResponsesRequest = await request.json();

  if (lastWords(asked).trim().toLowerCase() === "models") {
    const { structuredContent } = await mcp("sluice", "list_models", { modality: "text" });
    const { models } = structuredContent as { models: { name: string }[] };
    return say(asked.model, models.map(({ name }) => name).join("\n"));
  }

  // The answer is passed on as it comes: streamed when the caller asked for a stream. The caller pays for the model, and for nothing else.
  return sluice("/v1/responses", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ ...asked, model: settings.model, instructions: settings.instructions }),
  });
};

export default agent;
