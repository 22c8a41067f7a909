/** What the routes about agents answer; a part of `answers.ts`. */
import * as z from "zod";
import { MCP_SERVER_IDS } from "../../services/mcp/mcp-tools.js";

const details = {
  id: z.string(),
  name: z.string(),
  title: z.string(),
  description: z.string().nullable(),
  visibility: z.enum(["private", "public"]),
  requiredSafetyFeatures: z.array(z.string()),
  createdAt: z.string(),
  updatedAt: z.string(),
};

const agent = z.discriminatedUnion("type", [
  z.object({
    ...details,
    type: z.literal("prompt_agent"),
    systemPrompt: z.string(),
    baseModel: z.string(),
    mcpServers: z.array(z.enum(MCP_SERVER_IDS)),
  }),
  z.object({
    ...details,
    type: z.literal("code_agent"),
    repository: z.string(),
    deployedCommitSha: z.string().describe("40 lowercase hexadecimal characters."),
  }),
]);

export const AGENT_ANSWERS = {
  Agent: agent,
  AgentList: z.object({ data: z.array(agent) }),
  DeletedAgent: z.object({ id: z.string() }),
} as const satisfies Record<string, z.ZodType>;
