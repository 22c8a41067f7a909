/** Agents of the account, and deployment of a code agent's latest commit (docs/spec/agents.md). */
import { parsePermitted, requireKeyManager } from "../../services/access/permissions.js";
import { type SyncedAgent, syncAgentInput } from "../../services/agents/agent-sync.js";
import { createCodeAgentInput, createPromptAgentInput, updateAgentInput } from "../../services/agents/agents-input.js";
import type { CodeRun } from "../../services/agents/code-runs.js";
import { CODE_RUNS_KEPT_MAX } from "../../services/agents/limits.js";
import type { SelectedModel } from "../../services/community-models/repository.js";
import type { McpServerId } from "../../services/mcp/mcp-tools.js";
import { parseInput } from "../../services/requests/input.js";
import { builder, describedValues } from "../builder.js";
import { readId } from "../global-ids.js";
import { batchedByMap } from "../loaders.js";
import { Node } from "../nodes.js";
import { createdPosition, pageArgs, pageCost, toConnection, toPageRequest } from "../pages.js";
import { connectionSelectionOf, selectionOf } from "../selection.js";
import { Account } from "./accounts.js";
import { CommunityModel, NEEDS_KEYS, readBy } from "./community-models.js";
import { Model, SafetyFeature, VisibilityEnum } from "./models.js";

const McpServerEnum = builder.enumType("McpServer", {
  description: "An MCP server whose tools a prompt agent may use.",
  values: describedValues<McpServerId>({
    sluice: "The built-in tools of this gateway.",
    ffmpeg: "Edits audio, images and videos. Available when the operator has configured it.",
    computer: "A computer to work on. Available when the operator has configured it.",
    search: "Web search. Available when the operator has configured it.",
    integrations: "The apps that the account has connected. Available when the operator has configured it.",
    ada: "An assistant. Available when the operator has configured it.",
  }),
});

/** As for `CommunityModel`: selects only the columns that are shown. */
const ROW = { id: true, type: true, createdAt: true } as const;

export const Agent = builder.prismaInterface("CommunityModel", {
  variant: "Agent",
  description: "A model that the gateway itself answers. It is free; the models that it calls are billed to its caller.",
  interfaces: [Node, CommunityModel],
  select: ROW,
  resolveType: ({ type }) => (type === "code_agent" ? "CodeAgent" : "PromptAgent"),
});

const PromptAgent = builder.prismaObject("CommunityModel", {
  variant: "PromptAgent",
  description: "An agent that calls a model for its caller, with a system prompt and tools.",
  interfaces: [Node, CommunityModel, Agent],
  select: ROW,
  extensions: readBy("PromptAgent"),
  fields: (t) => ({
    systemPrompt: t.string({
      description: "The system prompt, sent before the conversation.",
      select: { agent: { select: { systemPrompt: true } } },
      resolve: ({ agent }) => agent?.systemPrompt ?? "",
    }),
    baseModelId: t.id({
      description: "The REST ID of the text model that the agent calls.",
      select: { agent: { select: { baseModel: true } } },
      resolve: ({ agent }, _args, ctx) => ctx.services.catalog.idOf(agent?.baseModel ?? ""),
    }),
    baseModel: t.field({
      type: Model,
      nullable: true,
      description: "The text model that the agent calls. Null when the calling key may not call it.",
      select: { agent: { select: { baseModel: true } } },
      resolve: ({ agent }, _args, ctx) => ctx.services.catalog.shown(ctx, agent?.baseModel ?? ""),
    }),
    mcpServers: t.field({
      type: [McpServerEnum],
      description: "The MCP servers whose tools the agent may use.",
      select: { agent: { select: { mcpServers: true } } },
      resolve: ({ agent }) => (agent?.mcpServers ?? []) as McpServerId[],
    }),
    missingMcpServers: t.field({
      type: [McpServerEnum],
      description: "Those of `mcpServers` that this gateway does not have. Their tools fail.",
      select: { agent: { select: { mcpServers: true } } },
      resolve: ({ agent }, _args, ctx) => ctx.services.agents.missingMcpServers(ctx, (agent?.mcpServers ?? []) as McpServerId[]),
    }),
  }),
});

builder.queryField("mcpServers", (t) =>
  t.field({
    type: [McpServerEnum],
    nullable: true,
    description: "The MCP servers that this gateway has, whose tools prompt agents can use. Permission KEYS.",
    resolve: (_root, _args, ctx) => ctx.services.agents.availableMcpServers(ctx),
  }),
);

const AgentRunOutcome = builder.enumType("AgentRunOutcome", {
  description: "How a run of a code agent ended.",
  values: describedValues<CodeRun["outcome"]>({
    answered: "The run answered completely.",
    failed: "The run threw an error, exited or broke off before its answer was complete.",
    cancelled: "The caller left before the answer was complete.",
    processor_time: "The run exceeded its processor time.",
    time: "The run exceeded its time limit.",
    memory: "The run exceeded its memory limit.",
    sent: "The run sent more data than allowed.",
    printed: "The run printed more output than allowed.",
  }),
});

const AgentRun = builder.objectRef<CodeRun>("AgentRun").implement({
  description:
    "A run of a code agent. Error and output are shown only for calls by the owner's own account, because those of other callers may contain their prompts.",
  fields: (t) => ({
    startedAt: t.expose("startedAt", { type: "DateTime", description: "When the run was called." }),
    durationMs: t.exposeInt("durationMs", { description: "Milliseconds from the call to the end, time in the queue included." }),
    outcome: t.expose("outcome", { type: AgentRunOutcome, description: "How the run ended." }),
    status: t.exposeInt("status", { nullable: true, description: "The HTTP status of the answer. Null when there was no answer." }),
    isOwn: t.boolean({
      description: "Whether the owner's own account made the call.",
      resolve: ({ generationId }) => generationId !== null,
    }),
    generationId: t.exposeID("generationId", {
      nullable: true,
      description: "The REST ID of the generation. Null when another account made the call.",
    }),
    error: t.exposeString("error", {
      nullable: true,
      description: "The error of the run. Null when the run did not fail or gave no error, or when another account made the call.",
    }),
    output: t.exposeString("output", {
      nullable: true,
      description: "The beginning of the printed output, at most 4 KiB. Null when there was none, or when another account made the call.",
    }),
  }),
});

const runsOf = batchedByMap((ctx, ids) => ctx.services.codeRuns.listOf(ctx, ids));

const CodeAgent = builder.prismaObject("CommunityModel", {
  variant: "CodeAgent",
  description: "An agent that runs the agent.ts file of a public git repository.",
  interfaces: [Node, CommunityModel, Agent],
  select: ROW,
  extensions: readBy("CodeAgent"),
  fields: (t) => ({
    repository: t.string({
      description: "The https URL of the repository.",
      select: { agent: { select: { repository: true } } },
      resolve: ({ agent }) => agent?.repository ?? "",
    }),
    deployedCommitSha: t.string({
      description: "The deployed commit, as 40 lowercase hexadecimal digits.",
      select: { agent: { select: { deployedCommitSha: true } } },
      resolve: ({ agent }) => agent?.deployedCommitSha ?? "",
    }),
    runs: t.field({
      type: [AgentRun],
      nullable: true,
      description: `The last ${CODE_RUNS_KEPT_MAX} runs, newest first. A run appears within a second of its end. ${NEEDS_KEYS}`,
      complexity: { field: 1, multiplier: CODE_RUNS_KEPT_MAX },
      resolve: async ({ id }, _args, ctx) => (await runsOf(ctx, id)) ?? [],
    }),
  }),
});

const readAgentId = (id: string) => readId(id, ["PromptAgent", "CodeAgent"], "id");

builder.prismaObjectField(Account, "agents", (t) =>
  t.field({
    type: builder.connectionObject(
      { type: Agent, name: "AgentConnection", description: "A page of agents." },
      { name: "AgentEdge", description: "An agent and its cursor." },
    ),
    nullable: true,
    description: `The account's agents, newest first. ${NEEDS_KEYS}`,
    args: pageArgs,
    complexity: pageCost,
    resolve: async ({ id }, args, ctx, info) => {
      ctx.services.accounts.assertOwn(ctx, id);
      const page = await ctx.services.agents.listSelected(ctx, toPageRequest(args, "agents"), connectionSelectionOf(ctx, info));
      return toConnection(page, "agents", createdPosition);
    },
  }),
);

const ONE_DESCRIPTION = `An agent of the account. ${NEEDS_KEYS}`;

builder.prismaObjectField(Account, "agent", (t) =>
  t.field({
    type: Agent,
    nullable: true,
    description: ONE_DESCRIPTION,
    args: { id: t.arg.id({ required: true, description: "The ID of the agent." }) },
    resolve: (account, { id }, ctx, info) => {
      ctx.services.accounts.assertOwn(ctx, account.id);
      return ctx.services.agents.getSelected(ctx, readAgentId(id), selectionOf(ctx, info));
    },
  }),
);

const PUBLISHING = "Who may call the agent. PUBLIC needs community publisher access.";
const SAFETY = "Safety checks of the input that apply to every request.";
const BASE_MODEL =
  "The text model that the agent calls: a canonical ID, node ID or alias of a model that the account may call. It must not be an agent.";
const BASE_MODEL_ID = { extensions: { wireName: "baseModel" } } as const;

const CreatePromptAgentInput = builder.inputType("CreatePromptAgentInput", {
  description: "Parameters of `createPromptAgent`.",
  fields: (t) => ({
    systemPrompt: t.string({ required: true, description: "The system prompt, 1 to 8,000 characters." }),
    baseModelId: t.id({ ...BASE_MODEL_ID, required: true, description: BASE_MODEL }),
    name: t.string({
      required: true,
      description: "The last part of the model ID: 1 to 120 letters, digits and the characters . _ : -",
    }),
    title: t.string({ required: true, description: "The display name, 1 to 42 characters." }),
    mcpServers: t.field({
      type: [McpServerEnum],
      required: true,
      defaultValue: [],
      description: "The MCP servers whose tools the agent may use, at most six.",
    }),
    description: t.string({ description: "A description of the agent, at most 1,000 characters." }),
    visibility: t.field({ type: VisibilityEnum, required: true, defaultValue: "private", description: PUBLISHING }),
    requiredSafetyFeatures: t.field({ type: [SafetyFeature], required: true, defaultValue: [], description: SAFETY }),
  }),
});

const CreatePromptAgentPayload = builder.objectRef<{ readonly agent: SelectedModel }>("CreatePromptAgentPayload").implement({
  description: "The result of `createPromptAgent`.",
  fields: (t) => ({ agent: t.expose("agent", { type: PromptAgent, description: "The new agent." }) }),
});

builder.mutationField("createPromptAgent", (t) =>
  t.field({
    type: CreatePromptAgentPayload,
    nullable: true,
    description: `Creates a prompt agent, which can then be called as a model. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: CreatePromptAgentInput, required: true, description: "The agent to create." }) },
    resolve: async (_root, { input: { baseModelId, ...input } }, ctx, info) => {
      const { agents } = ctx.services;
      requireKeyManager(ctx);
      const request = { ...input, baseModel: readId(baseModelId, "Model", "baseModelId") };
      const { id } = await agents.create(ctx, parsePermitted(ctx, requireKeyManager, createPromptAgentInput, request));
      return { agent: await agents.getSelected(ctx, id, selectionOf(ctx, info, ["agent"])) };
    },
  }),
);

const CreateCodeAgentInput = builder.inputType("CreateCodeAgentInput", {
  description: "Parameters of `createCodeAgent`. Name and title come from the repository.",
  fields: (t) => ({
    repository: t.string({ required: true, description: "The https URL of a public git repository with an agent.ts file at its root." }),
    description: t.string({ description: "Must be empty: the description comes from the repository." }),
    visibility: t.field({ type: VisibilityEnum, required: true, defaultValue: "private", description: PUBLISHING }),
    requiredSafetyFeatures: t.field({ type: [SafetyFeature], required: true, defaultValue: [], description: SAFETY }),
  }),
});

const CreateCodeAgentPayload = builder.objectRef<{ readonly agent: SelectedModel }>("CreateCodeAgentPayload").implement({
  description: "The result of `createCodeAgent`.",
  fields: (t) => ({ agent: t.expose("agent", { type: CodeAgent, description: "The new agent." }) }),
});

builder.mutationField("createCodeAgent", (t) =>
  t.field({
    type: CreateCodeAgentPayload,
    nullable: true,
    description: `Creates a code agent from the latest commit of a repository. It can then be called as a model. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: CreateCodeAgentInput, required: true, description: "The agent to create." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const { agents } = ctx.services;
      const request = parsePermitted(ctx, requireKeyManager, createCodeAgentInput, { ...input, type: "code_agent" });
      const { id } = await agents.create(ctx, request);
      return { agent: await agents.getSelected(ctx, id, selectionOf(ctx, info, ["agent"])) };
    },
  }),
);

const UpdateAgentInput = builder.inputType("UpdateAgentInput", {
  description:
    "Parameters of `updateAgent`. Omitted fields do not change. Name, title and description of a code agent come from its repository.",
  fields: (t) => ({
    id: t.id({ required: true, description: "The ID of the agent." }),
    name: t.string({ description: "The last part of the model ID." }),
    title: t.string({ description: "The display name." }),
    description: t.string({ description: "A description of the agent. Null removes it." }),
    visibility: t.field({ type: VisibilityEnum, description: `${PUBLISHING} Takes effect at once.` }),
    requiredSafetyFeatures: t.field({ type: [SafetyFeature], description: SAFETY }),
    systemPrompt: t.string({ description: "The system prompt of a prompt agent." }),
    baseModelId: t.id({ ...BASE_MODEL_ID, description: `For prompt agents. ${BASE_MODEL}` }),
    mcpServers: t.field({ type: [McpServerEnum], description: "For prompt agents: the MCP servers whose tools the agent may use." }),
  }),
});

const UpdateAgentPayload = builder.objectRef<{ readonly agent: SelectedModel }>("UpdateAgentPayload").implement({
  description: "The result of `updateAgent`.",
  fields: (t) => ({ agent: t.expose("agent", { type: Agent, description: "The agent after the change." }) }),
});

builder.mutationField("updateAgent", (t) =>
  t.field({
    type: UpdateAgentPayload,
    nullable: true,
    description: `Updates an agent. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: UpdateAgentInput, required: true, description: "The agent and its changes." }) },
    resolve: async (_root, { input: { id, baseModelId, ...changes } }, ctx, info) => {
      const { agents } = ctx.services;
      requireKeyManager(ctx);
      const baseModel = baseModelId && readId(baseModelId, "Model", "baseModelId");
      const request = { ...changes, ...(baseModel !== undefined && { baseModel }) };
      const changed = await agents.update(ctx, readAgentId(id), parsePermitted(ctx, requireKeyManager, updateAgentInput, request));
      return { agent: await agents.getSelected(ctx, changed.id, selectionOf(ctx, info, ["agent"])) };
    },
  }),
);

const DeleteAgentInput = builder.inputType("DeleteAgentInput", {
  description: "Parameters of `deleteAgent`.",
  fields: (t) => ({ id: t.id({ required: true, description: "The ID of the agent." }) }),
});

const DeleteAgentPayload = builder.objectRef<{ readonly agent: SelectedModel }>("DeleteAgentPayload").implement({
  description: "The result of `deleteAgent`.",
  fields: (t) => ({ agent: t.expose("agent", { type: Agent, description: "The agent before its deletion." }) }),
});

builder.mutationField("deleteAgent", (t) =>
  t.field({
    type: DeleteAgentPayload,
    nullable: true,
    description: `Deletes an agent and its model. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: DeleteAgentInput, required: true, description: "The agent to delete." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const { agents } = ctx.services;
      const agent = await agents.getSelected(ctx, readAgentId(input.id), selectionOf(ctx, info, ["agent"]));
      await agents.delete(ctx, agent.id);
      return { agent };
    },
  }),
);

const SyncAgentInput = builder.inputType("SyncAgentInput", {
  description: "Parameters of `syncAgent`.",
  fields: (t) => ({ id: t.id({ required: true, description: "The ID of the agent. It may belong to any account." }) }),
});

const SyncAgentPayload = builder.objectRef<SyncedAgent & { readonly id: string }>("SyncAgentPayload").implement({
  description: "The result of `syncAgent`.",
  fields: (t) => ({
    agent: t.field({
      type: CodeAgent,
      nullable: true,
      description: `The agent. Null when it belongs to another account. ${NEEDS_KEYS}`,
      resolve: ({ id }, _args, ctx, info) =>
        ctx.services.catalog.isOwn(ctx, { communityModelId: id }) ? ctx.services.agents.getSelected(ctx, id, selectionOf(ctx, info)) : null,
    }),
    isUpdated: t.exposeBoolean("updated", {
      description: "Whether a new commit was deployed. False when the latest commit was already deployed.",
    }),
    deployedCommitSha: t.exposeString("deployedCommitSha", { description: "The deployed commit, as 40 hexadecimal digits." }),
  }),
});

builder.mutationField("syncAgent", (t) =>
  t.field({
    type: SyncAgentPayload,
    nullable: true,
    description: "Deploys the latest commit of a code agent's repository, at most once in 30 seconds. Needs no credentials.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: SyncAgentInput, required: true, description: "The agent to deploy." }) },
    resolve: async (_root, { input }, ctx) => {
      const { id } = parseInput(syncAgentInput, { id: readAgentId(input.id) });
      return { id, ...(await ctx.services.agentSync.sync(ctx, id)) };
    },
  }),
);
