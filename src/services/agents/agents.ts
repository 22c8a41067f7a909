/**
 * Agents of an account (docs/spec/agents.md): prompt agents and code agents. Each is a registered model that the gateway runs itself. It is
 * free; the generations that it makes are billed to its caller.
 */
import type { KeyCaller, RequestContext, SessionCaller } from "../../context.js";
import { AppError, invalidInput, notFound } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { createId, isUuid } from "../../lib/ids.js";
import { COUNT_TAKE, newestFirst, type Page, type PageRequest, toPage } from "../../lib/pagination.js";
import type { Database } from "../../store/database.js";
import type { Prisma } from "../../store/generated/prisma/client.js";
import { requireKeyManager } from "../access/permissions.js";
import type { Catalog } from "../catalog/catalog.js";
import type { Model } from "../catalog/model.js";
import type { ChangedModelRow, CommunityModelRepository, SelectedModel } from "../community-models/repository.js";
import type { McpServerId } from "../mcp/mcp-tools.js";
import { AGENT_ROW_TYPES, type AgentRow, type LoadedAgent, toAgentRow, WITH_AGENT } from "./agent-row.js";
import type { CreateAgentInput, CreateCodeAgentInput, CreatePromptAgentInput, UpdateAgentInput } from "./agents-input.js";
import type { CodeRepositories } from "./repositories.js";

export interface AgentsDependencies {
  readonly database: Database;
  readonly modelRepository: CommunityModelRepository;
  readonly catalog: Catalog;
  readonly repositories: CodeRepositories;
  /** Resolves when the catalog has all registered models. */
  readonly upToDate: () => Promise<void>;
  readonly clock: Clock;
  /** The MCP servers that this gateway has. */
  readonly mcpServers: readonly McpServerId[];
}

type Owner = KeyCaller | SessionCaller;
/** Fields that a code agent takes from its repository. */
const IDENTITY = ["name", "title", "description"] as const;
const PROMPT_FIELDS = ["systemPrompt", "baseModel", "mcpServers"] as const;

export class Agents {
  constructor(private readonly deps: AgentsDependencies) {}

  /** The MCP servers whose tools a new agent can use here. */
  availableMcpServers(ctx: RequestContext): readonly McpServerId[] {
    requireKeyManager(ctx);
    return this.deps.mcpServers;
  }

  /** Those of an agent that this gateway does not have: their calls fail. */
  missingMcpServers(ctx: RequestContext, chosen: readonly McpServerId[]): readonly McpServerId[] {
    const available = this.availableMcpServers(ctx);
    return chosen.filter((server) => !available.includes(server));
  }

  /** Newest first. */
  async list(ctx: RequestContext, page: PageRequest): Promise<Page<AgentRow>> {
    const { accountId } = requireKeyManager(ctx);
    const { where: older, ...query } = newestFirst(page);
    const { communityModel } = this.deps.database.prisma;
    const where = { accountId, type: { in: [...AGENT_ROW_TYPES] } };
    const rows = await communityModel.findMany({
      where: { ...where, ...older },
      ...query,
      omit: { bearerToken: true },
      include: WITH_AGENT,
    });
    const now = this.deps.clock.now();
    return toPage(
      rows.map((row) => toAgentRow(row, now)),
      page,
      () => communityModel.count({ where, take: COUNT_TAKE }),
    );
  }

  /** Newest first, with the selected columns. */
  async listSelected(ctx: RequestContext, page: PageRequest, select: Prisma.CommunityModelSelect): Promise<Page<SelectedModel>> {
    const { accountId } = requireKeyManager(ctx);
    return this.deps.modelRepository.pageSelected(accountId, page, select, AGENT_ROW_TYPES);
  }

  /** Rejects with NOT_FOUND for another account's. */
  async getSelected(ctx: RequestContext, id: string, select: Prisma.CommunityModelSelect): Promise<SelectedModel> {
    const { accountId } = requireKeyManager(ctx);
    const [agent] = await this.deps.modelRepository.manySelected(accountId, [id], select);
    if (!agent || !AGENT_ROW_TYPES.some((type) => type === agent.type)) throw notFound("agent");
    return agent;
  }

  async get(ctx: RequestContext, id: string): Promise<AgentRow> {
    const { accountId } = requireKeyManager(ctx);
    return toAgentRow(await this.findOwned(accountId, id), this.deps.clock.now());
  }

  /**
   * Throws FORBIDDEN for a public agent of an account that may not publish; BAD_REQUEST for a taken name, an invalid base model, and a
   * repository without an agent; CONFLICT beyond the limit.
   */
  async create(ctx: RequestContext, input: CreateAgentInput): Promise<AgentRow> {
    const owner = requireKeyManager(ctx);
    if (input.visibility === "public") await this.deps.modelRepository.requirePublisher(owner);
    const data = input.type === "code_agent" ? await this.toCodeAgent(ctx, input) : this.toPromptAgent(owner, input);
    const now = this.deps.clock.now();
    const { id } = await this.deps.modelRepository.insert({
      ...data,
      id: createId(),
      accountId: owner.accountId,
      visibility: input.visibility,
      requiredSafetyFeatures: [...input.requiredSafetyFeatures],
      outputModalities: ["text"],
      createdAt: now,
      updatedAt: now,
    });
    return this.reread(owner.accountId, id);
  }

  /** Absent fields do not change. Throws as `create`, NOT_FOUND, and BAD_REQUEST for a field that the agent's type does not have. */
  async update(ctx: RequestContext, id: string, input: UpdateAgentInput): Promise<AgentRow> {
    const owner = requireKeyManager(ctx);
    const { accountId } = owner;
    const { type } = await this.findOwned(accountId, id);
    assertFieldsOf(type, input);
    if (input.visibility === "public") await this.deps.modelRepository.requirePublisher(owner);
    await this.deps.modelRepository.update(accountId, id, async (row, transaction) => {
      const agent = await transaction.agent.findUniqueOrThrow({ where: { id }, select: { baseModel: true } });
      const visibility = input.visibility ?? row.visibility;
      const isBaseInQuestion = input.baseModel !== undefined || input.visibility === "public";
      const base =
        agent.baseModel !== null && isBaseInQuestion ? this.findBase(owner, input.baseModel ?? agent.baseModel, visibility) : null;
      return { ...toChanges(input, base), updatedAt: this.deps.clock.now() };
    });
    return this.reread(accountId, id);
  }

  /** Generations under way continue. Throws NOT_FOUND. */
  async delete(ctx: RequestContext, id: string): Promise<{ readonly id: string }> {
    const { accountId } = requireKeyManager(ctx);
    await this.findOwned(accountId, id);
    await this.deps.modelRepository.delete(accountId, id);
    await this.deps.upToDate();
    return { id };
  }

  private toPromptAgent(owner: Owner, input: CreatePromptAgentInput) {
    const { name, title, description, systemPrompt, baseModel, mcpServers, visibility } = input;
    const base = this.findBase(owner, baseModel, visibility);
    return {
      ...{ type: "prompt_agent" as const, name, title, description },
      inputModalities: [...base.inputModalities],
      agent: { create: { systemPrompt, baseModel, mcpServers } },
    };
  }

  private async toCodeAgent(ctx: RequestContext, { repository }: CreateCodeAgentInput) {
    const { commitSha, bundle, name, title, description } = await this.deps.repositories.deploy(repository, ctx.signal);
    return {
      ...{ type: "code_agent" as const, name, title, description },
      inputModalities: ["text"],
      agent: { create: { repository, deployedCommitSha: commitSha, bundle } },
    };
  }

  /**
   * Finds a prompt agent's base model: a text model that the owner may call with any key, and no agent. For an agent that others may call,
   * they must be able to call the model too.
   */
  private findBase(owner: Owner, name: string, visibility: "private" | "public"): Model {
    const account = owner.kind === "key" ? { ...owner, modelLists: [] } : owner;
    const base = resolveAs("baseModel", () => this.deps.catalog.resolve(account, name, "text"));
    if (base.isAgent) throw invalidInput(`${base.id} is an agent: agents cannot call agents.`, "baseModel");
    if (base.isPrivate && visibility === "public") {
      throw invalidInput(`${base.id} is private: nobody else could call a public agent that asks it.`, "baseModel");
    }
    return base;
  }

  private async findOwned(accountId: string, id: string): Promise<LoadedAgent> {
    if (!isUuid(id)) throw notFound("agent");
    const row = await this.deps.database.prisma.communityModel.findUnique({ where: { id, accountId }, include: WITH_AGENT });
    if (!row?.agent) throw notFound("agent");
    return row;
  }

  private async reread(accountId: string, id: string): Promise<AgentRow> {
    await this.deps.upToDate();
    return toAgentRow(await this.findOwned(accountId, id), this.deps.clock.now());
  }
}

/** systemPrompt, baseModel and mcpServers are only for prompt agents (docs/spec/agents.md#operations); a code agent's identity is fixed. */
function assertFieldsOf(type: string, input: UpdateAgentInput): void {
  if (type === "prompt_agent") return;
  const foreign = PROMPT_FIELDS.find((field) => input[field] !== undefined);
  if (foreign !== undefined) throw invalidInput(`A code agent has no ${foreign}.`, foreign);
  const fixed = IDENTITY.find((field) => input[field] !== undefined);
  if (fixed !== undefined) throw invalidInput(`A code agent's ${fixed} comes from its repository.`, fixed);
}

function toChanges(input: UpdateAgentInput, base: Model | null): ChangedModelRow {
  const { name, title, description, visibility, requiredSafetyFeatures, systemPrompt, baseModel, mcpServers } = input;
  return {
    ...(name !== undefined && { name }),
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    ...(visibility !== undefined && { visibility }),
    ...(requiredSafetyFeatures !== undefined && { requiredSafetyFeatures }),
    ...(base && { inputModalities: [...base.inputModalities] }),
    agent: {
      update: {
        ...(systemPrompt !== undefined && { systemPrompt }),
        ...(baseModel !== undefined && { baseModel }),
        ...(mcpServers !== undefined && { mcpServers }),
      },
    },
  };
}

function resolveAs(field: string, resolve: () => Model): Model {
  try {
    return resolve();
  } catch (error) {
    if (error instanceof AppError && error.param === "model") throw invalidInput(error.message, field);
    throw error;
  }
}
