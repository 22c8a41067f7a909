/** Agents of the account (docs/spec/agents.md#operations). */
import * as z from "zod";
import { requireKeyManager } from "../../services/access/permissions.js";
import type { AgentRow } from "../../services/agents/agent-row.js";
import { createAgentInput, updateAgentInput } from "../../services/agents/agents-input.js";
import { COMMUNITY_MODELS_PER_ACCOUNT_MAX } from "../../services/community-models/limits.js";
import { MCP_SERVER_IDS } from "../../services/mcp/mcp-tools.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { json } from "../openapi/answer.js";
import { pathId, time } from "../openapi/schemas.js";
import type { Route } from "../route.js";

const details = {
  id: z.string(),
  name: z.string(),
  title: z.string(),
  description: z.string().nullable(),
  visibility: z.enum(["private", "public"]),
  requiredSafetyFeatures: z.array(z.string()),
  createdAt: time,
  updatedAt: time,
};

const agent = json(
  "Agent",
  z.discriminatedUnion("type", [
    z
      .object({
        ...details,
        type: z.literal("prompt_agent"),
        systemPrompt: z.string(),
        baseModel: z.string(),
        mcpServers: z.array(z.enum(MCP_SERVER_IDS)),
      })
      .meta({ id: "PromptAgent" }),
    z
      .object({
        ...details,
        type: z.literal("code_agent"),
        repository: z.string(),
        deployedCommitSha: z.string().describe("40 lowercase hexadecimal characters."),
      })
      .meta({ id: "CodeAgent" }),
  ]),
);

const byAgent = z.object({ agent: pathId("The id of an agent.") });

export function addAgentRoutes(route: Route, endpoint: Endpoint, { agents }: Pick<Services, "agents">): void {
  route("/agents", {
    GET: endpoint({
      id: "listAgents",
      tag: "Agents",
      summary: "Lists the account's agents, newest first.",
      answer: json("AgentList", z.object({ data: z.array(agent.schema) })),
      handler: async (ctx) => {
        const page = await agents.list(ctx, { first: COMMUNITY_MODELS_PER_ACCOUNT_MAX });
        return { data: page.items.map(toAgent) };
      },
    }),
    POST: endpoint({
      id: "createAgent",
      tag: "Agents",
      summary: "Creates an agent, which can then be called as a model.",
      description:
        "Creates a prompt agent unless `type` is `code_agent`. The agent is called as `community/<owner>/<name>` and is free; the models that it calls are billed to its caller. A public agent needs community publisher access.",
      answer: agent,
      example: { body: { name: "haiku", title: "Haiku", systemPrompt: "Answer with a haiku.", baseModel: "sandbox/text" } },
      requires: requireKeyManager,
      body: createAgentInput,
      handler: async (ctx, { body }) => toAgent(await agents.create(ctx, body)),
    }),
  });
  route("/agents/:agent", {
    GET: endpoint({
      id: "getAgent",
      tag: "Agents",
      summary: "Returns an agent.",
      answer: agent,
      params: byAgent,
      handler: async (ctx, { params }) => toAgent(await agents.get(ctx, params.agent)),
    }),
    PATCH: endpoint({
      id: "updateAgent",
      tag: "Agents",
      summary: "Updates an agent. Omitted fields do not change.",
      description: "The repository, name, title and description of a code agent cannot change after its creation.",
      answer: agent,
      example: { body: { title: "Haiku, and nothing else" } },
      requires: requireKeyManager,
      params: byAgent,
      body: updateAgentInput,
      handler: async (ctx, { params, body }) => toAgent(await agents.update(ctx, params.agent, body)),
    }),
    DELETE: endpoint({
      id: "deleteAgent",
      tag: "Agents",
      summary: "Deletes an agent and its model.",
      answer: json("DeletedAgent", z.object({ id: z.string() })),
      params: byAgent,
      handler: (ctx, { params }) => agents.delete(ctx, params.agent),
    }),
  });
}

/**
 * Updates a code agent to its repository's latest commit. Needs no credentials, so that git hosts can call it (docs/spec/agents.md#sync).
 */
export function addAgentSyncRoutes(route: Route, endpoint: Endpoint, { agentSync }: Pick<Services, "agentSync">): void {
  route("/agents/:agent/sync", {
    POST: endpoint({
      id: "syncAgent",
      tag: "Agents",
      summary: "Deploys the latest commit of a code agent's repository. Needs no credentials.",
      description: "Limited to once in 30 seconds per agent. `updated` is false when the latest commit was already deployed.",
      answer: json("SyncedAgent", z.object({ updated: z.boolean(), deployedCommitSha: z.string().regex(/^[0-9a-f]{40}$/) })),
      errors: ["502", "504"],
      isPublic: true,
      params: byAgent,
      handler: (ctx, { params }) => agentSync.sync(ctx, params.agent),
    }),
  });
}

/** See docs/spec/agents.md#record. */
function toAgent(row: AgentRow) {
  const { id, name, title, description, visibility, requiredSafetyFeatures, createdAt, updatedAt } = row;
  const common = { id, name, title, description, visibility, requiredSafetyFeatures, createdAt, updatedAt };
  if (row.type === "code_agent") {
    const { type, repository, deployedCommitSha } = row;
    return { ...common, type, repository, deployedCommitSha };
  }
  const { type, systemPrompt, baseModel, mcpServers } = row;
  return { ...common, type, systemPrompt, baseModel, mcpServers };
}
