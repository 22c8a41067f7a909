/** Input of operations that create or change an agent (docs/spec/agents.md#operations). */
import { z } from "zod";
import { MODEL_REFERENCE_CHARS_MAX } from "../../limits.js";
import { modelDescription, modelName, modelTitle, modelVisibility, requiredSafetyFeatures } from "../community-models/common-input.js";
import { MCP_SERVER_IDS } from "../mcp/mcp-tools.js";
import { distinct, storableText } from "../requests/input.js";
import { MCP_SERVERS_MAX, REPOSITORY_CHARS_MAX, SYSTEM_PROMPT_CHARS_MAX } from "./limits.js";

const systemPrompt = storableText.min(1).max(SYSTEM_PROMPT_CHARS_MAX);
const baseModel = storableText.min(1).max(MODEL_REFERENCE_CHARS_MAX);
const mcpServers = distinct(z.array(z.enum(MCP_SERVER_IDS)).max(MCP_SERVERS_MAX));

export const createPromptAgentInput = z.strictObject({
  type: z.literal("prompt_agent").optional(),
  systemPrompt,
  baseModel,
  name: modelName,
  title: modelTitle,
  mcpServers: mcpServers.default([]),
  description: modelDescription.default(null),
  visibility: modelVisibility.default("private"),
  requiredSafetyFeatures: requiredSafetyFeatures.default([]),
});
export type CreatePromptAgentInput = z.output<typeof createPromptAgentInput>;

/** Name, title and description come from the repository. */
export const createCodeAgentInput = z.strictObject({
  type: z.literal("code_agent"),
  repository: storableText.min(1).max(REPOSITORY_CHARS_MAX).meta({ pattern: "^https://[^\\s\\u0000]+$" }),
  description: z.literal("", "must be empty: it comes from the repository").optional(),
  visibility: modelVisibility.default("private"),
  requiredSafetyFeatures: requiredSafetyFeatures.default([]),
});
export type CreateCodeAgentInput = z.output<typeof createCodeAgentInput>;

/** A prompt agent unless `type` says otherwise. */
export const createAgentInput = z.discriminatedUnion("type", [createPromptAgentInput, createCodeAgentInput]);
export type CreateAgentInput = z.output<typeof createAgentInput>;

/** Absent fields do not change. */
export const updateAgentInput = z
  .strictObject({
    name: modelName,
    title: modelTitle,
    description: modelDescription,
    visibility: modelVisibility,
    requiredSafetyFeatures,
    systemPrompt,
    baseModel,
    mcpServers,
  })
  .partial();
export type UpdateAgentInput = z.output<typeof updateAgentInput>;
