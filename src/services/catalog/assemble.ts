/** From the catalog's sources to its models: which entry keeps a contested name, and which model is each modality's default. */

import type { Modality } from "./modality.js";
import { type CatalogSource, type Model, type ModelDefinition, toModel } from "./model.js";

export interface Assembled {
  /** In order of preference. */
  readonly models: readonly Model[];
  /** What is wrong with fallbacks: `models.<index in its source>.fallbacks.<position>: <what>`. */
  readonly problems: readonly string[];
}

interface Kept {
  readonly definition: ModelDefinition;
  /** Its index in its source. */
  readonly index: number;
  readonly aliases: readonly string[];
}

/**
 * `sources` come strongest first. A name belongs to the first source that gives it: a later model whose id is taken is
 * left out, an alias that is taken is dropped.
 */
export function assemble(sources: readonly CatalogSource[]): Assembled {
  const idByName = new Map<string, string>();
  const kept = sources.flatMap((source) => claimNames(source, idByName));
  const definitionById = new Map(kept.map(({ definition }) => [definition.id, definition]));
  const defaults = chooseDefaults(kept);
  const problems: string[] = [];
  const models = kept.map(({ definition, index, aliases }) => {
    const fallbacks = (definition.fallbacks ?? []).flatMap((name, position) => {
      const fallback = definitionById.get(idByName.get(name) ?? "");
      const problem = fallbackProblem(definition, name, fallback);
      if (problem !== null) problems.push(`models.${index}.fallbacks.${position}: ${problem}`);
      return fallback ? [fallback.id] : [];
    });
    return toModel(definition, {
      aliases,
      fallbacks: [...new Set(fallbacks)],
      isDefault: defaults.get(definition.modality) === definition.id,
    });
  });
  return { models, problems };
}

/** Ids before aliases, so that within one source an alias never takes another model's id. */
function claimNames(source: CatalogSource, idByName: Map<string, string>): Kept[] {
  const kept = source.models.map((definition, index) => ({ definition, index })).filter(({ definition }) => !idByName.has(definition.id));
  for (const { definition } of kept) idByName.set(definition.id, definition.id);
  return kept.map(({ definition, index }) => {
    const aliases = definition.aliases.filter((alias) => !idByName.has(alias));
    for (const alias of aliases) idByName.set(alias, definition.id);
    return { definition, index, aliases };
  });
}

/** The one that its source asks for; else the first stable one, else the first. */
function chooseDefaults(kept: readonly Kept[]): ReadonlyMap<Modality, string> {
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
