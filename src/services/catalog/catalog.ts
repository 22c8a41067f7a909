/** The catalog (docs/spec/models.md): models, their names, and who may call them. */
import { type Caller, isAgentAtWork, isManagementKey, type RequestContext } from "../../context.js";
import { type AppError, invalidInput, notFound, permissionDenied, upstreamFailed } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { closest } from "../../lib/issue-words.js";
import type { Page, PageRequest, RankedPosition } from "../../lib/pagination.js";
import { findSandboxPackages, type SandboxPackages } from "../../providers/sandbox/media/installed.js";
import { parseInput } from "../requests/input.js";
import { assemble, type RoutedModel, upstreamsOf } from "./assemble.js";
import { loadBundledSource, type VendorsSettings } from "./bundled.js";
import { type CommunityCatalog, isCommunityId, type ModelHealth, NO_COMMUNITY } from "./community.js";
import { toLocalSource } from "./local.js";
import { MODALITIES, MODALITY_TRAITS, type Modality } from "./modality.js";
import { CAPABILITIES, type CatalogSource, type DormantModel, type Model, type Upstream } from "./model.js";
import {
  type CatalogFilter,
  compareListed,
  inOrder,
  type ModelFilter,
  type ModelOrder,
  modelFilterInput,
  pageOf,
  toCatalogFilter,
  toTest,
} from "./model-list.js";
import { type CatalogWarnings, ModelsFileError, type ReadEnv, readModelsFile, reportOddities } from "./models-file.js";
import { Retirements, type StatedRetirements } from "./retirements.js";
import { NO_OVERRIDES, type RouteOverrides } from "./route-overrides.js";
import { sandboxSource } from "./sandbox.js";

// Errors for models that cannot be called: available ones of the kind (docs/spec/models.md#unknown-models), and for operators the variable
// to set. Unspecified: other callers only learn that the model is not offered.

/** Number of ids in an error about an unknown model, and characters of the name that are compared: no id is longer. */
const CLOSEST = { namesOf: ({ id, aliases }: Model) => [id, ...aliases], count: 3, charsMax: 253 } as const;
/** Unspecified: characters of a client's text in an error message. */
const QUOTED_CHARS_MAX = 100;

interface Missing {
  /** Undefined: the request named none, and there is no default. */
  readonly name: string | undefined;
  /** The parameter with the name. */
  readonly param: string;
  readonly served: readonly Modality[];
  readonly dormant: readonly DormantModel[];
  /** Whether the gateway has such models, callable or not. */
  readonly isAnyThere: boolean;
  /** Those that the caller may call. */
  readonly callable: readonly Model[];
  /** The caller may see which variable to set. */
  readonly seesSetup: boolean;
}

function refuseMissing(missing: Missing): AppError {
  const { name, param, served, dormant } = missing;
  if (name === undefined) return invalidInput(`Name a model: there is no default. ${hintOf(missing)}`, param);
  const known = dormant.find(({ id, aliases }) => id === name || aliases.includes(name));
  if (!known) return invalidInput(`There is no model ${quote(name)}. ${hintOf(missing)}`, param);
  if (!served.includes(known.modality)) return refuseModality(known);
  const { id, variables, isDisabled } = known;
  const setup = isDisabled
    ? "cannot be called: an operator has disabled all of its routes. Enable one with updateRoute."
    : `is in the catalog of this gateway, but its vendor has no key here: set ${variables.join(" or ")}.`;
  const why = missing.seesSetup ? setup : "is not offered by this gateway.";
  return invalidInput(`The model ${id} ${why} ${hintOf(missing)}`, param);
}

/** A model of another operation. */
function refuseModality({ id, modality }: Pick<Model, "id" | "modality">): AppError {
  const { route, field } = MODALITY_TRAITS[modality];
  return invalidInput(`The model ${id} is of modality ${modality}: use ${route}${field === null ? "" : ` (GraphQL: ${field})`}.`, "model");
}

function quote(text: string): string {
  return JSON.stringify(text.length > QUOTED_CHARS_MAX ? `${text.slice(0, QUOTED_CHARS_MAX)}…` : text);
}

function hintOf({ name, served, dormant, isAnyThere, callable, seesSetup }: Missing): string {
  const kind = served.length === MODALITIES.length ? "model" : `model of modality ${served.join(" or ")}`;
  if (callable.length > 0)
    return `The closest are: ${closest(callable, name ?? "", CLOSEST)
      .map(({ id }) => id)
      .join(", ")}.`;
  if (isAnyThere) return `This key may use no ${kind}.`;
  if (!seesSetup) return `This gateway has no ${kind}.`;
  const variables = new Set(dormant.filter(({ modality }) => served.includes(modality)).flatMap((model) => model.variables));
  const vendors = variables.size === 0 ? "" : `set ${[...variables].join(" or ")} for those of a vendor, or `;
  return `This gateway has no ${kind}: ${vendors}add one with MODELS_FILE.`;
}

/** Registered models that are compared with an unknown name, so that the cost does not grow with their number. */
const COMPARED_MAX = 1_000;

export interface CatalogSettings {
  /** The path of `MODELS_FILE`. */
  readonly modelsFile: string | null;
  /** False: no sandbox models and upstream. */
  readonly hasSandboxModels: boolean;
  readonly vendors: VendorsSettings;
  readonly readEnv: ReadEnv;
  /** Absent: the operator states none. */
  readonly retirements?: StatedRetirements | undefined;
  /** Only this machine can connect. Absent: others can. */
  readonly isForThisMachineOnly?: boolean | undefined;
}

/** Reads every source; the local server's models follow later. Rejects with a ModelsFileError naming each bad field. */
export async function loadCatalog(
  settings: CatalogSettings,
  clock: Clock,
  packages: SandboxPackages | null = settings.hasSandboxModels ? findSandboxPackages() : null,
  warnings: CatalogWarnings = {},
): Promise<Catalog> {
  const bundled = await loadBundledSource(settings.vendors, clock.now());
  const localUrl = settings.vendors.ollama?.baseUrl;
  const builtIn = [bundled, ...(localUrl ? [toLocalSource(localUrl, [])] : []), ...(packages ? [sandboxSource(packages)] : [])];
  if (settings.modelsFile === null) return new Catalog(builtIn, settings.isForThisMachineOnly);
  const builtInUpstreams = builtIn.flatMap((source) => source.upstreams.map((upstream) => upstream.id));
  const operator = await readModelsFile(settings.modelsFile, settings.readEnv, builtInUpstreams);
  const { problems } = assemble([operator, ...builtIn]);
  if (problems.length > 0) throw new ModelsFileError(settings.modelsFile, problems);
  reportOddities(operator, warnings);
  return new Catalog([operator, ...builtIn], settings.isForThisMachineOnly);
}

/** Data derived from the sources, immutable: made again when a source changes. */
interface Listing {
  /** Sorted as in lists: by modality, the default first, stable before alpha, then by id. */
  readonly models: readonly Model[];
  readonly modelByName: ReadonlyMap<string, Model>;
  readonly defaults: ReadonlyMap<Modality, Model>;
  readonly upstreams: ReadonlyMap<string, Upstream>;
  readonly dormant: readonly DormantModel[];
  readonly routed: readonly RoutedModel[];
  /** Canonical ids by allow list, as in a key's caller. */
  readonly allowedIds: WeakMap<readonly string[], ReadonlySet<string>>;
}

export class Catalog {
  private listing: Listing;
  private community: CommunityCatalog = NO_COMMUNITY;
  private overrides: RouteOverrides = NO_OVERRIDES;
  private retirements = new Retirements(new Map());

  /** `sources` are in order of precedence: operator, bundled, local, sandbox; one of each. */
  constructor(
    private sources: readonly CatalogSource[],
    private readonly isSetupShownToAll = false,
  ) {
    this.listing = this.toListing(sources);
  }

  /** Sets the directory of registered models. */
  include(community: CommunityCatalog): void {
    this.community = community;
  }

  /** Replaces the source of the same origin at once. Generations under way keep their model. */
  replaceSource(changed: CatalogSource): void {
    const sources = this.sources.map((source) => (source.origin === changed.origin ? changed : source));
    this.listing = this.toListing(sources);
    this.sources = sources;
  }

  /** Applies these changes of routes at once, instead of the former ones. Generations under way keep their model. */
  override(overrides: RouteOverrides): void {
    this.listing = toListing(this.sources, overrides, this.retirements);
    this.overrides = overrides;
  }

  /** Applies these dates instead of the former ones. */
  retire(retirements: Retirements): void {
    this.retirements = retirements;
    this.listing = this.toListing(this.sources);
  }

  private toListing(sources: readonly CatalogSource[]): Listing {
    return toListing(sources, this.overrides, this.retirements);
  }

  /** The operator's models and their routes, those without an enabled one too. */
  get routed(): readonly RoutedModel[] {
    return this.listing.routed;
  }

  get upstreams(): ReadonlyMap<string, Upstream> {
    return this.listing.upstreams;
  }

  /**
   * The requested model; undefined: the modality's default. Throws BAD_REQUEST for a name that is unknown or of another modality, and for
   * an agent requested by an agent; FORBIDDEN for one that the key may not use, and to a management key. `served` has the operation's modalities if there are
   * several.
   */
  resolve(caller: Caller, name: string | undefined, modality: Modality, served: readonly Modality[] = [modality]): Model {
    if (isManagementKey(caller)) throw permissionDenied("A management key cannot generate. Use one of the keys that it has created.");
    const model = name === undefined ? this.listing.defaults.get(modality) : this.findFor(caller, name);
    if (!model) throw this.missingModel(caller, name, served);
    if (model.modality !== modality) throw refuseModality(model);
    if (model.isAgent && isAgentAtWork(caller)) throw invalidInput("Agents cannot call agents.", "model");
    if (!this.isAllowed(caller, model)) throw permissionDenied(`This key may not use the model ${model.id}.`);
    return model;
  }

  /** Whether the caller's key may use this model. Callers without a key are not restricted here. */
  isAllowed(caller: Caller, model: Model): boolean {
    return caller.kind !== "key" || caller.modelLists.every((list) => this.idsOf(list).has(model.id));
  }

  /** A name's canonical id; the name itself for an unknown model. */
  idOf(name: string): string {
    return this.find(name)?.id ?? name;
  }

  /** The operator's models, sorted as in lists. */
  get models(): readonly Model[] {
    return this.listing.models;
  }

  /** By canonical id or alias, among models common to all callers. */
  find(name: string): Model | null {
    return this.listing.modelByName.get(name) ?? null;
  }

  /** As `find`, and among registered models that the caller may see. */
  findFor(caller: Caller, name: string): Model | null {
    return this.listing.modelByName.get(name) ?? (isCommunityId(name) ? this.community.find(caller, name) : null);
  }

  /** As `findFor`. Throws BAD_REQUEST at `param`, with the closest names. */
  known(caller: Caller, name: string, param: string): Model {
    const model = this.findFor(caller, name);
    if (!model) throw this.missingModel(caller, name, MODALITIES, param);
    return model;
  }

  fallbacksOf(model: Model): readonly Model[] {
    if (model.isCommunity) return this.community.fallbacksOf(model);
    return model.fallbacks.map((id) => this.find(id)).filter((fallback) => fallback !== null);
  }

  /** The ids of an entry's fallbacks that the caller may see. */
  namedFallbacks(caller: Caller, model: Model): readonly string[] {
    return model.isCommunity ? model.fallbacks.filter((id) => this.findFor(caller, id) !== null) : model.fallbacks;
  }

  /** The upstream of a model. Throws UPSTREAM_ERROR for a registered one that was deleted meanwhile. */
  upstream(id: string): Upstream {
    const upstream = this.listing.upstreams.get(id) ?? this.community.upstream(id);
    if (!upstream) throw upstreamFailed("The model is no longer there.", { cause: new Error(`The catalog holds no upstream ${id}.`) });
    return upstream;
  }

  healthOf(model: Pick<Model, "communityModelId">): ModelHealth {
    return this.community.healthOf(model);
  }

  /** The account that registered it; null: none, or deleted meanwhile. */
  ownerOf(model: Pick<Model, "communityModelId">): string | null {
    return this.community.ownerOf(model);
  }

  /** Whether the caller's account registered it. */
  isOwn({ caller }: RequestContext, model: Pick<Model, "communityModelId">): boolean {
    return caller.kind !== "anonymous" && this.ownerOf(model) === caller.accountId;
  }

  /** Models that the caller may call. Public; a restricted key sees its own models. */
  async list(ctx: RequestContext, filter: CatalogFilter): Promise<readonly Model[]> {
    const { capability, community, reliability, healthStatuses } = filter;
    if (capability !== undefined && !CAPABILITIES.some((known) => known === capability)) {
      throw invalidInput(`There is no capability ${quote(capability)}: it is one of ${CAPABILITIES.join(", ")}.`, "capability");
    }
    const reliableOnly = healthStatuses === undefined ? reliability !== "all" : !healthStatuses.includes("unreliable");
    const registered = community === false ? [] : this.community.list(ctx.caller, { reliableOnly });
    const isWanted = toTest(filter, (model) => this.healthOf(model));
    return inOrder(community === true ? [] : this.listing.models, registered).filter(
      (model) => isWanted(model) && this.mayCall(ctx.caller, model),
    );
  }

  /** A page of `list`. */
  async page(ctx: RequestContext, filter: ModelFilter, order: ModelOrder, page: PageRequest<RankedPosition>): Promise<Page<Model>> {
    return pageOf(await this.list(ctx, toCatalogFilter(parseInput(modelFilterInput, filter))), order, page);
  }

  /** One model, by canonical id or alias. Public. Rejects with NOT_FOUND for one that is unknown or not allowed for the key. */
  async get(ctx: RequestContext, name: string): Promise<Model> {
    const model = this.shown(ctx, name);
    if (!model) throw notFound("model");
    return model;
  }

  /** As `get`; null where that throws. */
  shown(ctx: RequestContext, name: string): Model | null {
    const model = this.findFor(ctx.caller, name);
    return model && this.mayCall(ctx.caller, model) ? model : null;
  }

  private idsOf(list: readonly string[]): ReadonlySet<string> {
    const { allowedIds } = this.listing;
    const known = allowedIds.get(list);
    if (known) return known;
    const ids = new Set(list.map((name) => this.idOf(name)));
    allowedIds.set(list, ids);
    return ids;
  }

  private mayCall(caller: Caller, model: Model): boolean {
    return this.isAllowed(caller, model) && !(model.isAgent && isAgentAtWork(caller));
  }

  /** The same owner's first. */
  private registeredNear(caller: Caller, name: string): readonly Model[] {
    const ofOwner = name.slice(0, name.lastIndexOf("/") + 1);
    const models = this.community.list(caller, { reliableOnly: true });
    const own = models.filter(({ id }) => id.startsWith(ofOwner));
    return [...own, ...models.filter(({ id }) => !id.startsWith(ofOwner))].slice(0, COMPARED_MAX);
  }

  private missingModel(caller: Caller, name: string | undefined, served: readonly Modality[], param = "model"): Error {
    // Registered models are named only for a name of that form.
    const registered = name !== undefined && isCommunityId(name) ? this.registeredNear(caller, name) : [];
    const there = [...this.listing.models, ...registered].filter(({ modality }) => served.includes(modality));
    return refuseMissing({
      name,
      param,
      served,
      dormant: this.listing.dormant,
      isAnyThere: there.length > 0,
      callable: there.filter((model) => this.mayCall(caller, model)),
      seesSetup: this.isSetupShownToAll || isOperatorHimself(caller),
    });
  }
}

function toListing(sources: readonly CatalogSource[], overrides: RouteOverrides, retirements: Retirements): Listing {
  const assembled = assemble(sources, overrides);
  const models = assembled.models.map((model) => retirements.applied(model)).sort(compareListed);
  const disabled = assembled.routed.filter(({ isOffered }) => !isOffered);
  return {
    models,
    modelByName: new Map(models.flatMap((model) => [model.id, ...model.aliases].map((name) => [name, model]))),
    defaults: new Map(models.filter((model) => model.isDefault).map((model) => [model.modality, model])),
    upstreams: upstreamsOf(sources),
    dormant: [
      ...disabled.map(({ id, aliases, stated: { modality } }) => ({ id, aliases, modality, variables: [], isDisabled: true })),
      ...sources.flatMap(({ dormant = [] }) => dormant),
    ],
    routed: assembled.routed,
    allowedIds: new WeakMap(),
  };
}

/** The variable is no secret, but only operators can set it. Publishable keys are public, so they do not count. */
function isOperatorHimself(caller: Caller): boolean {
  if (caller.kind === "anonymous" || caller.run !== undefined) return false;
  return caller.isOperator && !(caller.kind === "key" && caller.apiKeyType === "publishable");
}
