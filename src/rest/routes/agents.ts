/** Agents of the account (docs/spec/agents.md#operations). */
import { requireKeyManager } from "../../services/access/permissions.js";
import type { AgentRow } from "../../services/agents/agent-row.js";
import { createAgentInput, updateAgentInput } from "../../services/agents/agents-input.js";
import { COMMUNITY_MODELS_PER_ACCOUNT_MAX } from "../../services/community-models/limits.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import type { Route } from "../route.js";

export function addAgentRoutes(route: Route, endpoint: Endpoint, { agents }: Pick<Services, "agents">): void {
  route("/agents", {
    GET: endpoint({
      handler: async (ctx) => {
        const page = await agents.list(ctx, { first: COMMUNITY_MODELS_PER_ACCOUNT_MAX });
        return { data: page.items.map(toAgent) };
      },
    }),
    POST: endpoint({
      requires: requireKeyManager,
      body: createAgentInput,
      handler: async (ctx, { body }) => toAgent(await agents.create(ctx, body)),
    }),
  });
  route("/agents/:agent", {
    GET: endpoint({ handler: async (ctx, { exchange }) => toAgent(await agents.get(ctx, exchange.parameter("agent"))) }),
    PATCH: endpoint({
      requires: requireKeyManager,
      body: updateAgentInput,
      handler: async (ctx, { body, exchange }) => toAgent(await agents.update(ctx, exchange.parameter("agent"), body)),
    }),
    DELETE: endpoint({ handler: (ctx, { exchange }) => agents.delete(ctx, exchange.parameter("agent")) }),
  });
}

/**
 * Updates a code agent to its repository's latest commit. Needs no credentials, so that git hosts can call it (docs/spec/agents.md#sync).
 */
export function addAgentSyncRoutes(route: Route, endpoint: Endpoint, { agentSync }: Pick<Services, "agentSync">): void {
  route("/agents/:agent/sync", {
    POST: endpoint({ isPublic: true, handler: (ctx, { exchange }) => agentSync.sync(ctx, exchange.parameter("agent")) }),
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
