/** An agent as its owner sees it (docs/spec/agents.md#record): the row of its model and its definition. */
import type { Prisma } from "../../store/generated/prisma/client.js";
import type { SafetyFeature } from "../catalog/model.js";
import { communityModelId, termsAt } from "../community-models/record.js";
import type { CommonView, ShownModelRow } from "../community-models/view.js";
import type { McpServerId } from "../mcp/mcp-tools.js";

/** Fields of every registered model; agents have no scheduled changes. */
type AgentDetails = Omit<CommonView, "pending">;

export interface PromptAgentRow extends AgentDetails {
  readonly type: "prompt_agent";
  readonly systemPrompt: string;
  readonly baseModel: string;
  readonly mcpServers: readonly McpServerId[];
}

export interface CodeAgentRow extends AgentDetails {
  readonly type: "code_agent";
  readonly repository: string;
  readonly deployedCommitSha: string;
}

export type AgentRow = PromptAgentRow | CodeAgentRow;

export const AGENT_ROW_TYPES = ["prompt_agent", "code_agent"] as const;

export const WITH_AGENT = {
  account: { select: { handle: true } },
  agent: { select: { systemPrompt: true, baseModel: true, mcpServers: true, repository: true, deployedCommitSha: true } },
} as const satisfies Prisma.CommunityModelInclude;

export type LoadedAgent = ShownModelRow & {
  readonly account: { readonly handle: string };
  readonly agent: {
    readonly systemPrompt: string | null;
    readonly baseModel: string | null;
    readonly mcpServers: readonly string[];
    readonly repository: string | null;
    readonly deployedCommitSha: string | null;
  } | null;
};

export function toAgentRow(row: LoadedAgent, now: Date): AgentRow {
  const { agent } = row;
  if (!agent) throw new Error(`The model ${row.id} is no agent.`);
  const details: AgentDetails = {
    id: row.id,
    modelId: communityModelId(row.account.handle, row.name),
    name: row.name,
    title: row.title,
    description: row.description,
    visibility: termsAt(row, now).visibility,
    requiredSafetyFeatures: row.requiredSafetyFeatures as SafetyFeature[],
    createdAt: row.createdAt,
    updatedAt: row.updatedAt,
  };
  if (row.type === "code_agent") {
    const { repository, deployedCommitSha } = agent;
    return { ...details, type: "code_agent", repository: repository ?? "", deployedCommitSha: deployedCommitSha ?? "" };
  }
  const { systemPrompt, baseModel, mcpServers } = agent;
  return {
    ...details,
    type: "prompt_agent",
    systemPrompt: systemPrompt ?? "",
    baseModel: baseModel ?? "",
    mcpServers: mcpServers as McpServerId[],
  };
}
