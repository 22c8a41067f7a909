/** Agents of the account, and bringing a code agent to its repository's latest commit (docs/spec/agents.md). */
import { parsePermitted, requireKeyManager } from "../../services/access/permissions.js";
import type { AgentRow, CodeAgentRow, PromptAgentRow } from "../../services/agents/agent-row.js";
import { type SyncedAgent, syncAgentInput } from "../../services/agents/agent-sync.js";
import { createCodeAgentInput, createPromptAgentInput, updateAgentInput } from "../../services/agents/agents-input.js";
import { MCP_SERVER_IDS, type McpServerId } from "../../services/mcp/mcp-tools.js";
import { parseInput } from "../../services/requests/input.js";
import { builder, enumValues } from "../builder.js";
import { createdPosition, pageArgs, pageCost, toConnection, toPageRequest } from "../pages.js";
import { Account } from "./accounts.js";
import { SafetyFeature, VisibilityEnum } from "./models.js";

const SyncAgentPayload = builder.objectRef<SyncedAgent>("SyncAgentPayload").implement({
  fields: (t) => ({
    updated: t.exposeBoolean("updated", { description: "False: the latest commit was deployed already." }),
    deployedCommitSha: t.exposeString("deployedCommitSha", { description: "40 hexadecimal digits." }),
  }),
});

builder.mutationField("syncAgent", (t) =>
  t.field({
    type: SyncAgentPayload,
    nullable: true,
    description: "Deploys the latest commit of a code agent's repository; once in 30 seconds. Open to all.",
    extensions: { isOnePerOperation: true },
    args: {
      input: t.arg({
        type: builder.inputType("SyncAgentInput", { fields: (f) => ({ id: f.id({ required: true }) }) }),
        required: true,
      }),
    },
    resolve: (_root, { input }, ctx) => ctx.services.agentSync.sync(ctx, parseInput(syncAgentInput, input).id),
  }),
);

const NEEDS_KEYS = "Needs a secret key with the permission KEYS.";

const McpServerEnum = builder.enumType("McpServer", {
  description: "A server whose tools a prompt agent may use. SLUICE is this gateway; the others are the operator's to set up.",
  values: enumValues<McpServerId>(MCP_SERVER_IDS),
});

export const Agent = builder.interfaceRef<AgentRow>("Agent").implement({
  description: "A model that the gateway answers for itself. It is free; the models that it asks are billed to whoever calls it.",
  resolveType: ({ type }) => (type === "code_agent" ? "CodeAgent" : "PromptAgent"),
  fields: (t) => ({
    id: t.exposeID("id"),
    modelId: t.exposeID("modelId", { description: "What it is called by: `community/<owner>/<name>`." }),
    name: t.exposeString("name"),
    title: t.exposeString("title"),
    description: t.exposeString("description", { nullable: true }),
    visibility: t.expose("visibility", { type: VisibilityEnum }),
    requiredSafetyFeatures: t.field({ type: [SafetyFeature], resolve: (row) => [...row.requiredSafetyFeatures] }),
    createdAt: t.expose("createdAt", { type: "DateTime" }),
    updatedAt: t.expose("updatedAt", { type: "DateTime" }),
  }),
});

const PromptAgent = builder.objectRef<PromptAgentRow>("PromptAgent").implement({
  description: "Asks a model on its caller's behalf, with a system prompt and tools.",
  interfaces: [Agent],
  fields: (t) => ({
    systemPrompt: t.exposeString("systemPrompt"),
    baseModel: t.exposeString("baseModel", { description: "The text model that it asks." }),
    mcpServers: t.field({ type: [McpServerEnum], resolve: (row) => [...row.mcpServers] }),
  }),
});

const CodeAgent = builder.objectRef<CodeAgentRow>("CodeAgent").implement({
  description: "Runs the agent.ts of a public git repository.",
  interfaces: [Agent],
  fields: (t) => ({
    repository: t.exposeString("repository"),
    deployedCommitSha: t.exposeString("deployedCommitSha", { description: "40 lowercase hexadecimal characters." }),
  }),
});

builder.objectField(Account, "agents", (t) =>
  t.field({
    type: builder.connectionObject({ type: Agent, name: "AgentConnection" }, { name: "AgentEdge" }),
    nullable: true,
    description: `The account's agents, newest first. ${NEEDS_KEYS}`,
    args: pageArgs,
    complexity: pageCost,
    resolve: async (_row, args, ctx) =>
      toConnection(await ctx.services.agents.list(ctx, toPageRequest(args, "agents")), "agents", createdPosition),
  }),
);

builder.queryField("agent", (t) =>
  t.field({
    type: Agent,
    nullable: true,
    description: `One of the account's agents. ${NEEDS_KEYS}`,
    args: { id: t.arg.id({ required: true }) },
    resolve: (_root, { id }, ctx) => ctx.services.agents.get(ctx, id),
  }),
);

const CreatePromptAgentInput = builder.inputType("CreatePromptAgentInput", {
  fields: (t) => ({
    systemPrompt: t.string({ required: true, description: "1 to 8,000 characters." }),
    baseModel: t.string({ required: true, description: "A text model that the account may call, and no agent." }),
    name: t.string({ required: true, description: "1 to 120 letters, digits and the characters . _ : -" }),
    title: t.string({ required: true, description: "1 to 42 characters." }),
    mcpServers: t.field({ type: [McpServerEnum], description: "None unless stated." }),
    description: t.string({ description: "At most 1,000 characters." }),
    visibility: t.field({ type: VisibilityEnum, description: "PRIVATE unless stated. PUBLIC needs community publisher access." }),
    requiredSafetyFeatures: t.field({ type: [SafetyFeature], description: "None unless stated." }),
  }),
});

builder.mutationField("createPromptAgent", (t) =>
  t.field({
    type: PromptAgent,
    nullable: true,
    description: `Makes a prompt agent, which is then a model that can be called. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: CreatePromptAgentInput, required: true }) },
    resolve: async (_root, { input }, ctx) =>
      (await ctx.services.agents.create(ctx, parsePermitted(ctx, requireKeyManager, createPromptAgentInput, input))) as PromptAgentRow,
  }),
);

const CreateCodeAgentInput = builder.inputType("CreateCodeAgentInput", {
  fields: (t) => ({
    repository: t.string({ required: true, description: "The https address of a public git repository with an agent.ts at its root." }),
    description: t.string({ description: "Only an empty one is taken: the description comes from the repository." }),
    visibility: t.field({ type: VisibilityEnum, description: "PRIVATE unless stated. PUBLIC needs community publisher access." }),
    requiredSafetyFeatures: t.field({ type: [SafetyFeature], description: "None unless stated." }),
  }),
});

builder.mutationField("createCodeAgent", (t) =>
  t.field({
    type: CodeAgent,
    nullable: true,
    description: `Makes a code agent of a repository's latest commit, which is then a model that can be called. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: CreateCodeAgentInput, required: true }) },
    resolve: async (_root, { input }, ctx) =>
      (await ctx.services.agents.create(
        ctx,
        parsePermitted(ctx, requireKeyManager, createCodeAgentInput, { ...input, type: "code_agent" }),
      )) as CodeAgentRow,
  }),
);

const UpdateAgentInput = builder.inputType("UpdateAgentInput", {
  description: "Only the fields that are sent change. A code agent's name, title and description are its repository's.",
  fields: (t) => ({
    id: t.id({ required: true }),
    name: t.string(),
    title: t.string(),
    description: t.string({ description: "Null: none." }),
    visibility: t.field({ type: VisibilityEnum, description: "Takes effect at once. PUBLIC needs community publisher access." }),
    requiredSafetyFeatures: t.field({ type: [SafetyFeature] }),
    systemPrompt: t.string({ description: "Of a prompt agent." }),
    baseModel: t.string({ description: "Of a prompt agent." }),
    mcpServers: t.field({ type: [McpServerEnum], description: "Of a prompt agent." }),
  }),
});

builder.mutationField("updateAgent", (t) =>
  t.field({
    type: Agent,
    nullable: true,
    description: `Changes an agent. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: UpdateAgentInput, required: true }) },
    resolve: (_root, { input: { id, ...changes } }, ctx) =>
      ctx.services.agents.update(ctx, id, parsePermitted(ctx, requireKeyManager, updateAgentInput, changes)),
  }),
);

const DeleteAgentPayload = builder.objectRef<{ readonly id: string }>("DeleteAgentPayload").implement({
  fields: (t) => ({ id: t.exposeID("id") }),
});

builder.mutationField("deleteAgent", (t) =>
  t.field({
    type: DeleteAgentPayload,
    nullable: true,
    description: `Removes an agent with its model. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: {
      input: t.arg({
        type: builder.inputType("DeleteAgentInput", { fields: (f) => ({ id: f.id({ required: true }) }) }),
        required: true,
      }),
    },
    resolve: (_root, { input }, ctx) => ctx.services.agents.delete(ctx, input.id),
  }),
);
