/** Agents of the account, and bringing a code agent to its repository's latest commit (docs/spec/agents.md). */
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
  description: "A server whose tools a prompt agent may use.",
  values: describedValues<McpServerId>({
    sluice: "This gateway.",
    ffmpeg: "Changes sound, pictures and videos. The operator's to set up.",
    computer: "A computer to work at. The operator's to set up.",
    search: "Searches the web. The operator's to set up.",
    integrations: "The services that the account has connected. The operator's to set up.",
    ada: "An assistant. The operator's to set up.",
  }),
});

/** See `CommunityModel`: nothing more of a row is read than is told. */
const ROW = { id: true, type: true, createdAt: true } as const;

export const Agent = builder.prismaInterface("CommunityModel", {
  variant: "Agent",
  description: "A model that the gateway answers for itself. It is free; the models that it asks are billed to whoever calls it.",
  interfaces: [Node, CommunityModel],
  select: ROW,
  resolveType: ({ type }) => (type === "code_agent" ? "CodeAgent" : "PromptAgent"),
});

const PromptAgent = builder.prismaObject("CommunityModel", {
  variant: "PromptAgent",
  description: "Asks a model on its caller's behalf, with a system prompt and tools.",
  interfaces: [Node, CommunityModel, Agent],
  select: ROW,
  extensions: readBy("PromptAgent"),
  fields: (t) => ({
    systemPrompt: t.string({
      description: "What the model is told first.",
      select: { agent: { select: { systemPrompt: true } } },
      resolve: ({ agent }) => agent?.systemPrompt ?? "",
    }),
    baseModelId: t.id({
      description: "The REST id of the text model that it asks.",
      select: { agent: { select: { baseModel: true } } },
      resolve: ({ agent }, _args, ctx) => ctx.services.catalog.idOf(agent?.baseModel ?? ""),
    }),
    baseModel: t.field({
      type: Model,
      nullable: true,
      description: "The text model that it asks. Null: it is not the calling key's to call.",
      select: { agent: { select: { baseModel: true } } },
      resolve: ({ agent }, _args, ctx) => ctx.services.catalog.shown(ctx, agent?.baseModel ?? ""),
    }),
    mcpServers: t.field({
      type: [McpServerEnum],
      description: "The servers whose tools it may use.",
      select: { agent: { select: { mcpServers: true } } },
      resolve: ({ agent }) => (agent?.mcpServers ?? []) as McpServerId[],
    }),
  }),
});

const AgentRunOutcome = builder.enumType("AgentRunOutcome", {
  description: "How a run of a code agent ended.",
  values: describedValues<CodeRun["outcome"]>({
    answered: "It answered to the end.",
    failed: "It threw, ended, or broke the run off before its answer was complete.",
    cancelled: "Nobody wanted its answer any more.",
    processor_time: "It used more processor time than a run has.",
    time: "It took longer than a run may.",
    memory: "It needed more memory than a run has.",
    sent: "It sent more than a run may.",
    printed: "It printed more than a run may.",
  }),
});

const AgentRun = builder.objectRef<CodeRun>("AgentRun").implement({
  description: "A run of a code agent. What it said is told of its owner's own calls alone: of others' it may be what they asked.",
  fields: (t) => ({
    startedAt: t.expose("startedAt", { type: "DateTime", description: "When it was called." }),
    durationMs: t.exposeInt("durationMs", { description: "From then to its end, in milliseconds; waiting for its turn is part of it." }),
    outcome: t.expose("outcome", { type: AgentRunOutcome, description: "How it ended." }),
    status: t.exposeInt("status", { nullable: true, description: "The HTTP status of its answer. Null: it gave none." }),
    isOwn: t.boolean({
      description: "Whether its owner's account called it.",
      resolve: ({ generationId }) => generationId !== null,
    }),
    generationId: t.exposeID("generationId", { nullable: true, description: "The REST id of the generation. Null: another account's." }),
    error: t.exposeString("error", {
      nullable: true,
      description: "What it failed with. Null: it did not, it did not say, or another account called it.",
    }),
    output: t.exposeString("output", {
      nullable: true,
      description: "The beginning of what it printed, of 4 KiB at most. Null: nothing, or another account called it.",
    }),
  }),
});

const runsOf = batchedByMap((ctx, ids) => ctx.services.codeRuns.listOf(ctx, ids));

const CodeAgent = builder.prismaObject("CommunityModel", {
  variant: "CodeAgent",
  description: "Runs the agent.ts of a public git repository.",
  interfaces: [Node, CommunityModel, Agent],
  select: ROW,
  extensions: readBy("CodeAgent"),
  fields: (t) => ({
    repository: t.string({
      description: "The https address of its repository.",
      select: { agent: { select: { repository: true } } },
      resolve: ({ agent }) => agent?.repository ?? "",
    }),
    deployedCommitSha: t.string({
      description: "The commit that runs, in 40 lowercase hexadecimal digits.",
      select: { agent: { select: { deployedCommitSha: true } } },
      resolve: ({ agent }) => agent?.deployedCommitSha ?? "",
    }),
    runs: t.field({
      type: [AgentRun],
      nullable: true,
      description: `Its last runs, the newest first; ${CODE_RUNS_KEPT_MAX} are kept, and are here within a second of their end. ${NEEDS_KEYS}`,
      complexity: { field: 1, multiplier: CODE_RUNS_KEPT_MAX },
      resolve: async ({ id }, _args, ctx) => (await runsOf(ctx, id)) ?? [],
    }),
  }),
});

const readAgentId = (id: string) => readId(id, ["PromptAgent", "CodeAgent"], "id");

builder.prismaObjectField(Account, "agents", (t) =>
  t.field({
    type: builder.connectionObject(
      { type: Agent, name: "AgentConnection", description: "Agents, page by page." },
      { name: "AgentEdge", description: "An agent, and its place in the list." },
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

const ONE_DESCRIPTION = `One of the account's agents. ${NEEDS_KEYS}`;

builder.prismaObjectField(Account, "agent", (t) =>
  t.field({
    type: Agent,
    nullable: true,
    description: ONE_DESCRIPTION,
    args: { id: t.arg.id({ required: true, description: "Which one." }) },
    resolve: (account, { id }, ctx, info) => {
      ctx.services.accounts.assertOwn(ctx, account.id);
      return ctx.services.agents.getSelected(ctx, readAgentId(id), selectionOf(ctx, info));
    },
  }),
);

builder.queryField("agent", (t) =>
  t.field({
    type: Agent,
    nullable: true,
    description: ONE_DESCRIPTION,
    deprecationReason: "Use `me { agent(id) }`.",
    args: { id: t.arg.id({ required: true, description: "Which one." }) },
    resolve: (_root, { id }, ctx, info) => ctx.services.agents.getSelected(ctx, readAgentId(id), selectionOf(ctx, info)),
  }),
);

const PUBLISHING = "Who may call it. PUBLIC needs community publisher access.";
const SAFETY = "The checks of the input that every request has.";
const BASE_MODEL = "The text model that it asks: one that the account may call, by either id or by an alias, and no agent.";
/** What the service calls this field. */
/** What the service calls the model by. */
const BASE_MODEL_ID = { extensions: { wireName: "baseModel" } } as const;

const CreatePromptAgentInput = builder.inputType("CreatePromptAgentInput", {
  description: "The agent to be made.",
  fields: (t) => ({
    systemPrompt: t.string({ required: true, description: "What the model is told first, in 1 to 8,000 characters." }),
    baseModelId: t.id({ ...BASE_MODEL_ID, required: true, description: BASE_MODEL }),
    name: t.string({
      required: true,
      description: "The last part of the id that it is called by: 1 to 120 letters, digits and the characters . _ : -",
    }),
    title: t.string({ required: true, description: "What people call it, in 1 to 42 characters." }),
    mcpServers: t.field({
      type: [McpServerEnum],
      required: true,
      defaultValue: [],
      description: "The servers whose tools it may use, at most six.",
    }),
    description: t.string({ description: "What it is good for, in at most 1,000 characters." }),
    visibility: t.field({ type: VisibilityEnum, required: true, defaultValue: "private", description: PUBLISHING }),
    requiredSafetyFeatures: t.field({ type: [SafetyFeature], required: true, defaultValue: [], description: SAFETY }),
  }),
});

const CreatePromptAgentPayload = builder.objectRef<{ readonly agent: SelectedModel }>("CreatePromptAgentPayload").implement({
  description: "A prompt agent that has been made.",
  fields: (t) => ({ agent: t.expose("agent", { type: PromptAgent, description: "The agent." }) }),
});

builder.mutationField("createPromptAgent", (t) =>
  t.field({
    type: CreatePromptAgentPayload,
    nullable: true,
    description: `Makes a prompt agent, which is then a model that can be called. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: CreatePromptAgentInput, required: true, description: "The agent." }) },
    resolve: async (_root, { input: { baseModelId, ...input } }, ctx, info) => {
      const { agents } = ctx.services;
      requireKeyManager(ctx);
      const asked = { ...input, baseModel: readId(baseModelId, "Model", "baseModelId") };
      const { id } = await agents.create(ctx, parsePermitted(ctx, requireKeyManager, createPromptAgentInput, asked));
      return { agent: await agents.getSelected(ctx, id, selectionOf(ctx, info, ["agent"])) };
    },
  }),
);

const CreateCodeAgentInput = builder.inputType("CreateCodeAgentInput", {
  description: "The agent to be made. Its name and title come from its repository.",
  fields: (t) => ({
    repository: t.string({ required: true, description: "The https address of a public git repository with an agent.ts at its root." }),
    description: t.string({ description: "Only an empty one is taken: the description comes from the repository." }),
    visibility: t.field({ type: VisibilityEnum, required: true, defaultValue: "private", description: PUBLISHING }),
    requiredSafetyFeatures: t.field({ type: [SafetyFeature], required: true, defaultValue: [], description: SAFETY }),
  }),
});

const CreateCodeAgentPayload = builder.objectRef<{ readonly agent: SelectedModel }>("CreateCodeAgentPayload").implement({
  description: "A code agent that has been made.",
  fields: (t) => ({ agent: t.expose("agent", { type: CodeAgent, description: "The agent." }) }),
});

builder.mutationField("createCodeAgent", (t) =>
  t.field({
    type: CreateCodeAgentPayload,
    nullable: true,
    description: `Makes a code agent of a repository's latest commit, which is then a model that can be called. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: CreateCodeAgentInput, required: true, description: "The agent." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const { agents } = ctx.services;
      const asked = parsePermitted(ctx, requireKeyManager, createCodeAgentInput, { ...input, type: "code_agent" });
      const { id } = await agents.create(ctx, asked);
      return { agent: await agents.getSelected(ctx, id, selectionOf(ctx, info, ["agent"])) };
    },
  }),
);

const UpdateAgentInput = builder.inputType("UpdateAgentInput", {
  description: "Only the fields that are sent change. A code agent's name, title and description are its repository's.",
  fields: (t) => ({
    id: t.id({ required: true, description: "Which agent." }),
    name: t.string({ description: "The last part of the id that it is called by." }),
    title: t.string({ description: "What people call it." }),
    description: t.string({ description: "What it is good for. Null: none." }),
    visibility: t.field({ type: VisibilityEnum, description: `${PUBLISHING} Takes effect at once.` }),
    requiredSafetyFeatures: t.field({ type: [SafetyFeature], description: SAFETY }),
    systemPrompt: t.string({ description: "Of a prompt agent: what the model is told first." }),
    baseModelId: t.id({ ...BASE_MODEL_ID, description: `Of a prompt agent. ${BASE_MODEL}` }),
    mcpServers: t.field({ type: [McpServerEnum], description: "Of a prompt agent: the servers whose tools it may use." }),
  }),
});

const UpdateAgentPayload = builder.objectRef<{ readonly agent: SelectedModel }>("UpdateAgentPayload").implement({
  description: "An agent that has been changed.",
  fields: (t) => ({ agent: t.expose("agent", { type: Agent, description: "As it now is." }) }),
});

builder.mutationField("updateAgent", (t) =>
  t.field({
    type: UpdateAgentPayload,
    nullable: true,
    description: `Changes an agent. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: UpdateAgentInput, required: true, description: "Which agent, and what changes." }) },
    resolve: async (_root, { input: { id, baseModelId, ...changes } }, ctx, info) => {
      const { agents } = ctx.services;
      requireKeyManager(ctx);
      const baseModel = baseModelId && readId(baseModelId, "Model", "baseModelId");
      const asked = { ...changes, ...(baseModel !== undefined && { baseModel }) };
      const changed = await agents.update(ctx, readAgentId(id), parsePermitted(ctx, requireKeyManager, updateAgentInput, asked));
      return { agent: await agents.getSelected(ctx, changed.id, selectionOf(ctx, info, ["agent"])) };
    },
  }),
);

const DeleteAgentInput = builder.inputType("DeleteAgentInput", {
  description: "The agent to be removed.",
  fields: (t) => ({ id: t.id({ required: true, description: "Which agent." }) }),
});

const DeleteAgentPayload = builder.objectRef<{ readonly agent: SelectedModel }>("DeleteAgentPayload").implement({
  description: "An agent that has been removed.",
  fields: (t) => ({ agent: t.expose("agent", { type: Agent, description: "As it was." }) }),
});

builder.mutationField("deleteAgent", (t) =>
  t.field({
    type: DeleteAgentPayload,
    nullable: true,
    description: `Removes an agent with its model. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: DeleteAgentInput, required: true, description: "Which agent." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const { agents } = ctx.services;
      const agent = await agents.getSelected(ctx, readAgentId(input.id), selectionOf(ctx, info, ["agent"]));
      await agents.delete(ctx, agent.id);
      return { agent };
    },
  }),
);

const SyncAgentInput = builder.inputType("SyncAgentInput", {
  description: "The agent to be brought to its repository's latest commit.",
  fields: (t) => ({ id: t.id({ required: true, description: "Which agent, whoever's it is." }) }),
});

const SyncAgentPayload = builder.objectRef<SyncedAgent & { readonly id: string }>("SyncAgentPayload").implement({
  description: "A code agent that runs its repository's latest commit.",
  fields: (t) => ({
    agent: t.field({
      type: CodeAgent,
      nullable: true,
      description: `The agent. Null: it is another account's. ${NEEDS_KEYS}`,
      resolve: ({ id }, _args, ctx, info) =>
        ctx.services.catalog.isOwn(ctx, { communityModelId: id }) ? ctx.services.agents.getSelected(ctx, id, selectionOf(ctx, info)) : null,
    }),
    isUpdated: t.exposeBoolean("updated", { description: "False: the latest commit was deployed already." }),
    deployedCommitSha: t.exposeString("deployedCommitSha", { description: "The commit that runs, in 40 hexadecimal digits." }),
  }),
});

builder.mutationField("syncAgent", (t) =>
  t.field({
    type: SyncAgentPayload,
    nullable: true,
    description: "Deploys the latest commit of a code agent's repository; once in 30 seconds. Open to all.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: SyncAgentInput, required: true, description: "Which agent." }) },
    resolve: async (_root, { input }, ctx) => {
      const { id } = parseInput(syncAgentInput, { id: readAgentId(input.id) });
      return { id, ...(await ctx.services.agentSync.sync(ctx, id)) };
    },
  }),
);
