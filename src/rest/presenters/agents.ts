/** An agent as REST shows it (docs/spec/agents.md#record). */
import type { AgentRow } from "../../services/agents/agent-row.js";

export function toAgent(row: AgentRow) {
  const { id, name, title, description, visibility, requiredSafetyFeatures, createdAt, updatedAt } = row;
  const common = { id, name, title, description, visibility, requiredSafetyFeatures, createdAt, updatedAt };
  if (row.type === "code_agent") {
    const { type, repository, deployedCommitSha } = row;
    return { ...common, type, repository, deployedCommitSha };
  }
  const { type, systemPrompt, baseModel, mcpServers } = row;
  return { ...common, type, systemPrompt, baseModel, mcpServers };
}
