/** Merges the catalog's sources: decides contested names, operators' changes of routes, and each modality's default. */
import type { Modality } from "./modality.js";
import { type CatalogSource, type Model, type ModelDefinition, toModel, type Upstream } from "./model.js";
import {
  hasRoute,
  type IgnoredOverride,
  NO_OVERRIDES,
  type OverriddenModel,
  type RouteOverrides,
  withOverrides,
} from "./route-overrides.js";

export interface Assembled {
  /** In order of preference: those with an enabled route. */
  readonly models: readonly Model[];
  /** Those without one too, in the same order. */
  readonly routed: readonly RoutedModel[];
  /** Faults of fallbacks: `models.<index in its source>.fallbacks.<position>: <fault>`. */
  readonly problems: readonly string[];
}

interface Claimed {
  readonly definition: ModelDefinition;
  /** Its index in its source. */
  readonly index: number;
  readonly aliases: readonly string[];
}

type Kept = Claimed & OverriddenModel;

/** A model of the sources and its routes, for operators. */
export interface RoutedModel {
  readonly id: string;
  readonly aliases: readonly string[];
  /** As its source states it. */
  readonly stated: ModelDefinition;
  /** With the operators' changes. */
  readonly definition: ModelDefinition;
  readonly ignored: readonly IgnoredOverride[];
  /** False: all of its routes are disabled, so it cannot be called. */
  readonly isOffered: boolean;
}

/**
 * `sources` are in order of precedence. A name belongs to the first source that has it: a later model with that id is dropped, a later
 * alias too. A model without an enabled route keeps its names, and is not among the models.
 */
export function assemble(sources: readonly CatalogSource[], overrides: RouteOverrides = NO_OVERRIDES): Assembled {
  const idByName = new Map<string, string>();
  const upstreams = upstreamsOf(sources);
  const find = (id: string) => upstreams.get(id);
  const kept = sources
    .flatMap((source) => claimNames(source, idByName))
    .map((one): Kept => ({ ...one, ...withOverrides(one.definition, overrides.get(one.definition.id), find) }));
  const offered = kept.filter(({ definition }) => hasRoute(definition, find));
  const definitionById = new Map(offered.map(({ definition }) => [definition.id, definition]));
  const defaults = chooseDefaults(offered);
  const problems: string[] = [];
  const models = offered.map(({ definition, index, aliases }) => {
    const fallbacks = (definition.fallbacks ?? []).flatMap((name, position) => {
      const fallback = definitionById.get(idByName.get(name) ?? "");
      const problem = fallbackProblem(definition, name, fallback);
      if (problem !== null) problems.push(`models.${index}.fallbacks.${position}: ${problem}`);
      return fallback ? [fallback.id] : [];
    });
    const isDefault = defaults.get(definition.modality) === definition.id;
    return toModel(definition, { aliases, fallbacks: [...new Set(fallbacks)], isDefault }, find);
  });
  const routed = kept.map(({ definition, stated, aliases, ignored }) => {
    return { id: definition.id, aliases, stated, definition, ignored, isOffered: definitionById.has(definition.id) };
  });
  return { models, routed, problems };
}

/** Ids before aliases, so that within a source an alias never takes another model's id. */
function claimNames(source: CatalogSource, idByName: Map<string, string>): Claimed[] {
  const kept = source.models.map((definition, index) => ({ definition, index })).filter(({ definition }) => !idByName.has(definition.id));
  for (const { definition } of kept) idByName.set(definition.id, definition.id);
  return kept.map(({ definition, index }) => {
    const aliases = definition.aliases.filter((alias) => !idByName.has(alias));
    for (const alias of aliases) idByName.set(alias, definition.id);
    return { definition, index, aliases };
  });
}

/** The one marked by its source; else the first stable one, else the first. */
function chooseDefaults(kept: readonly Claimed[]): ReadonlyMap<Modality, string> {
  const ranked = kept.map(({ definition }) => definition).sort((one, other) => defaultRank(one) - defaultRank(other));
  const defaults = new Map<Modality, string>();
  for (const { modality, id } of ranked) if (!defaults.has(modality)) defaults.set(modality, id);
  return defaults;
}

function defaultRank(definition: ModelDefinition): number {
  if (definition.isDefault) return 0;
  return definition.isAlpha ? 2 : 1;
}

function fallbackProblem(definition: ModelDefinition, name: string, fallback: ModelDefinition | undefined): string | null {
  if (!fallback) return `there is no model ${name}`;
  if (fallback.id === definition.id) return "a model cannot be its own fallback";
  if (fallback.modality !== definition.modality) return `${name} is a model of ${fallback.modality}, not of ${definition.modality}`;
  return null;
}

/** By id; of duplicates the one of the first source. */
export function upstreamsOf(sources: readonly CatalogSource[]): ReadonlyMap<string, Upstream> {
  // The last one set is kept.
  return new Map([...sources].reverse().flatMap((source) => source.upstreams.map((upstream) => [upstream.id, upstream])));
}
