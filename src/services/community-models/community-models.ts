/**
 * Community models: registered by an account, called as `community/<owner>/<name>` (docs/spec/community-models.md). Callers that may manage
 * the account's keys manage them. `pending-change.ts` decides when a change takes effect, `fallbacks.ts` which fallbacks are valid.
 */
import type { RequestContext } from "../../context.js";
import { invalidInput, notFound } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { createId } from "../../lib/ids.js";
import { COUNT_TAKE, newestFirst, type Page, type PageRequest, toPage } from "../../lib/pagination.js";
import { USAGE_DAILY_DAYS_DEFAULT } from "../../limits.js";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { Prisma } from "../../store/generated/prisma/client.js";
import type { AccountModel } from "../../store/generated/prisma/models.js";
import { requireKeyManager } from "../access/permissions.js";
import { mapEvents } from "../accounts/live.js";
import { MODALITY_TRAITS } from "../catalog/modality.js";
import type { SecretBox } from "../secrets/secret-box.js";
import { firstDayOf } from "../usage/usage.js";
import { checkFallbacks, findCandidates, knownTerms } from "./fallbacks.js";
import { COMMUNITY_MODELS_PER_ACCOUNT_MAX } from "./limits.js";
import { watchModels } from "./model-changes.js";
import type { CreateCommunityModelInput, CreateEndpointAgentInput, UpdateCommunityModelInput } from "./models-input.js";
import { planTerms, type TermsPlan } from "./pending-change.js";
import {
  applied,
  type CommunityModelRow,
  type CommunityModelTerms,
  communityModelId,
  pendingAt,
  type TermsRow,
  termsAt,
} from "./record.js";
import type { ChangedModelRow, CommunityModelRepository, ModelChange, ModelTransaction, SelectedModel } from "./repository.js";
import { assertHasFields, assertUsedPrices, requestedTerms, statedPrices, termsColumns } from "./terms-input.js";
import type { UpstreamUrls } from "./upstream-url.js";
import { type CommunityModelView, type FallbackCandidate, type ShownTerms, toCandidate, toShownTerms, toView } from "./view.js";

/** The provider shown for an account's models (docs/spec/community-models.md#record). */
export interface ModelProvider {
  readonly name: string | null;
  readonly url: string | null;
  readonly iconUrl: string | null;
}

export interface CommunityModelsDependencies {
  readonly database: Database;
  readonly modelRepository: CommunityModelRepository;
  readonly urls: UpstreamUrls;
  readonly box: SecretBox;
  readonly events: Events;
  /** Resolves when the catalog has all registered models. */
  readonly upToDate: () => Promise<void>;
  readonly clock: Clock;
}

/** A change of one of the account's models, by its owner or because a scheduled change took effect. */
export interface OwnModelChange {
  readonly id: string;
  readonly change: ModelChange;
}

export interface ModelUsage {
  readonly requests: number;
  readonly costNanocredits: bigint;
  /** Its first day, UTC. */
  readonly from: Date;
}

/** Columns of an account that its provider is made of. */
export const PROVIDER_COLUMNS = { name: true, githubUsername: true, image: true } as const;
type ProviderColumns = Pick<AccountModel, keyof typeof PROVIDER_COLUMNS>;

const TOKEN_COLUMN = { table: "community_model", column: "bearer_token" } as const;

export class CommunityModels {
  constructor(private readonly deps: CommunityModelsDependencies) {}

  /** Lists all models, agents included, newest first, and their provider. */
  async list(ctx: RequestContext): Promise<{ readonly models: readonly CommunityModelView[]; readonly provider: ModelProvider }> {
    const { accountId } = requireKeyManager(ctx);
    const [{ items }, provider] = await Promise.all([
      this.page(accountId, { first: COMMUNITY_MODELS_PER_ACCOUNT_MAX }),
      this.providerOf(accountId),
    ]);
    return { models: items, provider };
  }

  /** Lists models, newest first, with the selected columns. */
  async listSelected(ctx: RequestContext, page: PageRequest, select: Prisma.CommunityModelSelect): Promise<Page<SelectedModel>> {
    const { accountId } = requireKeyManager(ctx);
    return this.deps.modelRepository.pageSelected(accountId, page, select);
  }

  async getMany(ctx: RequestContext, ids: readonly string[], select: Prisma.CommunityModelSelect): Promise<SelectedModel[]> {
    const { accountId } = requireKeyManager(ctx);
    return this.deps.modelRepository.manySelected(accountId, ids, select);
  }

  /** Rejects with NOT_FOUND. */
  async getSelected(ctx: RequestContext, id: string, select: Prisma.CommunityModelSelect): Promise<SelectedModel> {
    const [model] = await this.getMany(ctx, [id], select);
    if (!model) throw notFound("model");
    return model;
  }

  /** Spending of other accounts on each model in the `days` UTC days that end today. */
  async usageOf(
    ctx: RequestContext,
    modelIds: readonly string[],
    days: number = USAGE_DAILY_DAYS_DEFAULT,
  ): Promise<ReadonlyMap<string, ModelUsage>> {
    const { accountId } = requireKeyManager(ctx);
    const handle = (await this.accountOf(accountId)).handle;
    const own = modelIds.filter((id) => id.startsWith(communityModelId(handle, "")));
    const from = firstDayOf(this.deps.clock.now(), days);
    const sums = await this.deps.database.prisma.usageDaily.groupBy({
      by: ["model"],
      where: { model: { in: own }, day: { gte: from }, accountId: { not: accountId } },
      _sum: { requests: true, costNanocredits: true },
    });
    const nothing = { requests: 0, costNanocredits: 0n, from };
    const found = sums.map(
      ({ model, _sum }) => [model, { requests: _sum.requests ?? 0, costNanocredits: _sum.costNanocredits ?? 0n, from }] as const,
    );
    return new Map([...own.map((id) => [id, nothing] as const), ...found]);
  }

  termsOf(row: TermsRow): ShownTerms {
    return toShownTerms(row, this.deps.clock.now());
  }

  async provider(ctx: RequestContext): Promise<ModelProvider> {
    const { accountId } = requireKeyManager(ctx);
    return this.providerOf(accountId);
  }

  /** The provider of an account's models. Its GitHub page is its only known address. */
  providerFrom({ name, githubUsername, image }: ProviderColumns): ModelProvider {
    return { name, url: githubUsername && `https://github.com/${encodeURIComponent(githubUsername)}`, iconUrl: image };
  }

  async get(ctx: RequestContext, id: string): Promise<CommunityModelView> {
    const { accountId } = requireKeyManager(ctx);
    return this.show(await this.deps.modelRepository.findOwned(accountId, id));
  }

  /** Creates a private model, or one that is scheduled to become public. */
  async create(ctx: RequestContext, input: CreateCommunityModelInput): Promise<CommunityModelView> {
    const caller = requireKeyManager(ctx);
    if (input.visibility === "public") await this.deps.modelRepository.requirePublisher(caller);
    const { modelRepository, urls, box, clock } = this.deps;
    const isText = input.modality === "text";
    const url = isText ? await urls.check(input.url, "url") : await urls.check(input.baseUrl, "baseUrl");
    const { accountId } = caller;
    const id = createId();
    const { name, title, description, modality, upstreamModel = name, requiredSafetyFeatures, perUserRpm, fallbacks, advertised } = input;
    const traits = MODALITY_TRAITS[modality];
    const { paidOnly, imagePricing, visibility } = input;
    const terms = { visibility: "private", paidOnly, imagePricing, prices: statedPrices(input) } as const;
    const now = clock.now();
    const plan = planTerms(terms, null, { visibility }, now);
    assertUsedPrices(modality, plan);
    const modelId = await this.modelIdOf(accountId, name);
    const row = await modelRepository.insert(
      {
        ...{ id, accountId, name, title, description, modality, url, upstreamModel, requiredSafetyFeatures, perUserRpm, fallbacks },
        ...{ type: "proxy", createdAt: now, updatedAt: now },
        api: isText ? input.api : null,
        inputModalities: [...(input.inputModalities ?? traits.inputs)],
        outputModalities: [...traits.outputs],
        bearerToken: box.seal({ ...TOKEN_COLUMN, rowId: id }, input.bearerToken),
        ...advertisedColumns(advertised),
        ...termsColumns(plan),
      },
      (transaction) =>
        checkFallbacks(transaction, {
          holder: { id: null, accountId, modelId, modality, terms: termsOf(plan) },
          ...{ ids: fallbacks, isKept: false, now },
        }),
    );
    return this.showChanged(row);
  }

  /** Creates an agent that its owner runs: called like a text model, without a credential and free of charge. */
  async createEndpointAgent(ctx: RequestContext, input: CreateEndpointAgentInput): Promise<CommunityModelView> {
    const caller = requireKeyManager(ctx);
    if (input.visibility === "public") await this.deps.modelRepository.requirePublisher(caller);
    const { visibility, upstreamModel, ...columns } = input;
    const url = await this.deps.urls.check(input.url, "url");
    const terms = { visibility: "private", paidOnly: false, imagePricing: "request", prices: {} } as const;
    const now = this.deps.clock.now();
    const row = await this.deps.modelRepository.insert({
      ...columns,
      ...{ id: createId(), accountId: caller.accountId, type: "endpoint_agent", modality: "text", url },
      ...{ upstreamModel: upstreamModel ?? input.name, createdAt: now, updatedAt: now },
      ...termsColumns(planTerms(terms, null, { visibility }, now)),
    });
    return this.showChanged(row);
  }

  /** Absent fields do not change. */
  async update(ctx: RequestContext, id: string, input: UpdateCommunityModelInput): Promise<CommunityModelView> {
    const caller = requireKeyManager(ctx);
    const { accountId } = caller;
    const { modelRepository, urls } = this.deps;
    const known = await modelRepository.findOwned(accountId, id);
    assertHasFields(known, input);
    if (input.visibility === "public") await modelRepository.requirePublisher(caller);
    const [param, address] = input.baseUrl === undefined ? (["url", input.url] as const) : (["baseUrl", input.baseUrl] as const);
    const url = address === undefined ? undefined : await urls.check(address, param);
    const modelId = await this.modelIdOf(accountId, input.name ?? known.name);
    const row = await modelRepository.update(accountId, id, (current, transaction) =>
      this.change({ current, input, url, modelId, transaction, now: this.deps.clock.now() }),
    );
    return this.showChanged(row);
  }

  /** Deletes a model or agent, with everything that the gateway stores to run it. */
  async delete(ctx: RequestContext, id: string): Promise<string> {
    const { accountId } = requireKeyManager(ctx);
    await this.deps.modelRepository.delete(accountId, id);
    await this.deps.upToDate();
    return id;
  }

  /** Models that could be fallbacks of this one, the account's own first. */
  async fallbackCandidates(ctx: RequestContext, id: string): Promise<readonly FallbackCandidate[]> {
    const { accountId } = requireKeyManager(ctx);
    const row = await this.deps.modelRepository.findOwned(accountId, id);
    if (row.type !== "proxy") throw invalidInput("An agent has no fallbacks.", "id");
    const now = this.deps.clock.now();
    const modelId = await this.modelIdOf(accountId, row.name);
    const holder = { id, accountId, modelId, modality: row.modality, terms: knownTerms(row, now) };
    const rows = await findCandidates(this.deps.database.prisma, holder, now);
    return rows.map((candidate) => toCandidate(candidate, accountId, now));
  }

  changed(ctx: RequestContext): AsyncIterableIterator<OwnModelChange> {
    const { accountId } = requireKeyManager(ctx);
    return mapEvents(watchModels(ctx, accountId, this.deps), async ({ modelId, change }) => ({ id: modelId, change }));
  }

  private async change({ current, input, url, modelId, transaction, now }: ChangeRequest): Promise<ChangedModelRow> {
    const { name, title, description, upstreamModel, bearerToken, inputModalities, outputModalities } = input;
    const { requiredSafetyFeatures, advertised, perUserRpm, fallbacks, api } = input;
    const isMoved = url !== undefined && url !== current.url;
    if (isMoved && current.type === "proxy" && bearerToken === undefined) {
      throw invalidInput("A new URL requires the bearerToken again.", "bearerToken");
    }
    const isRenamed = name !== undefined && name !== current.name;
    const requested = requestedTerms(input);
    const plan = planTerms(termsAt(current, now), pendingAt(current, now), requested, now, isRenamed);
    if (isRenamed && plan.terms.visibility === "public") {
      throw invalidInput(
        "A public model keeps its name, because callers and what they agreed to pay go by it: make it private first.",
        "name",
      );
    }
    if (current.type === "proxy") {
      assertUsedPrices(current.modality, plan);
      const { id, accountId, modality } = current;
      const isAffected = isRenamed || requested.imagePricing !== undefined || Object.keys(requested.prices ?? {}).length > 0;
      if (fallbacks !== undefined || isAffected) {
        await checkFallbacks(transaction, {
          holder: { id, accountId, modelId, modality, terms: termsOf(plan) },
          ...{ ids: fallbacks ?? current.fallbacks, isKept: fallbacks === undefined, now },
        });
      }
    }
    const { box } = this.deps;
    return {
      ...present({ name, title, description, upstreamModel, inputModalities, outputModalities }),
      ...present({ requiredSafetyFeatures, perUserRpm, fallbacks, api, url }),
      ...(bearerToken !== undefined && { bearerToken: box.seal({ ...TOKEN_COLUMN, rowId: current.id }, bearerToken) }),
      ...(advertised !== undefined && advertisedColumns(advertised)),
      ...termsColumns(plan),
      updatedAt: now,
    };
  }

  private async page(accountId: string, page: PageRequest): Promise<Page<CommunityModelView>> {
    const { where: older, ...query } = newestFirst(page);
    const { communityModel } = this.deps.database.prisma;
    const rows = await communityModel.findMany({
      where: { accountId, ...older },
      omit: { bearerToken: true },
      include: { account: { select: { handle: true } } },
      ...query,
    });
    const now = this.deps.clock.now();
    return toPage(
      rows.map((row) => toView(row, row.account.handle, now)),
      page,
      () => communityModel.count({ where: { accountId }, take: COUNT_TAKE }),
    );
  }

  /** Returns once the model can be called as shown. */
  private async showChanged(row: CommunityModelRow): Promise<CommunityModelView> {
    await this.deps.upToDate();
    return this.show(row);
  }

  private async show(row: CommunityModelRow): Promise<CommunityModelView> {
    const { handle } = await this.accountOf(row.accountId);
    return toView(row, handle, this.deps.clock.now());
  }

  private async modelIdOf(accountId: string, name: string): Promise<string> {
    return communityModelId((await this.accountOf(accountId)).handle, name);
  }

  private async providerOf(accountId: string): Promise<ModelProvider> {
    return this.providerFrom(await this.accountOf(accountId));
  }

  private accountOf(accountId: string) {
    return this.deps.database.prisma.account.findUniqueOrThrow({
      where: { id: accountId },
      select: { handle: true, ...PROVIDER_COLUMNS },
    });
  }
}

interface ChangeRequest {
  readonly current: CommunityModelRow;
  readonly input: UpdateCommunityModelInput;
  /** The stored form; undefined: unchanged. */
  readonly url: string | undefined;
  /** The callable id after the change. */
  readonly modelId: string;
  readonly transaction: ModelTransaction;
  readonly now: Date;
}

/** The current terms, and those after the scheduled change. */
function termsOf({ terms, scheduled }: TermsPlan): readonly CommunityModelTerms[] {
  return scheduled ? [terms, applied(terms, scheduled.change)] : [terms];
}

function advertisedColumns(advertised: CreateCommunityModelInput["advertised"]) {
  return { advertisedCapabilities: advertised?.capabilities ?? [], advertisedContextLength: advertised?.contextLength ?? null };
}

/** Drops undefined fields. */
function present<Fields extends object>(fields: Fields): { [Name in keyof Fields]?: Exclude<Fields[Name], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never;
}
