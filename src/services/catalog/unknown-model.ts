/**
 * What a request is told whose model cannot be called: which ones of the kind can (docs/spec/models.md#unknown-models), and, whoever
 * runs the gateway, what to set. Unspecified: strangers are not told which variables are unset, only that the model is not offered.
 */
import { type AppError, invalidInput } from "../../errors.js";
import { closest } from "../../lib/issue-words.js";
import { MODALITIES, MODALITY_TRAITS, type Modality } from "./modality.js";
import type { DormantModel, Model } from "./model.js";

/** How many ids an error about an unknown model names, and how much of the name is looked at: no id is longer. */
const CLOSEST = { namesOf: ({ id, aliases }: Model) => [id, ...aliases], count: 3, charsMax: 253 } as const;
/** Unspecified: how much of a caller's own words an error message repeats. */
const QUOTED_CHARS_MAX = 100;

export interface Missing {
  /** Undefined: the request has named none, and there is no default. */
  readonly name: string | undefined;
  /** Where it was named. */
  readonly param: string;
  /** The modalities that the operation takes. */
  readonly served: readonly Modality[];
  readonly dormant: readonly DormantModel[];
  /** Whether the gateway has models of these modalities, whoever may call them. */
  readonly isAnyThere: boolean;
  /** Those of them that the caller may call. */
  readonly callable: readonly Model[];
  /** Whether the caller is told what an operator has to set. */
  readonly isToldSetup: boolean;
}

export function refuseMissing(missing: Missing): AppError {
  const { name, param, served, dormant } = missing;
  if (name === undefined) return invalidInput(`Name a model: there is no default. ${hintOf(missing)}`, param);
  const known = dormant.find(({ id, aliases }) => id === name || aliases.includes(name));
  if (!known) return invalidInput(`There is no model ${quote(name)}. ${hintOf(missing)}`, param);
  if (!served.includes(known.modality)) return refuseModality(known);
  const { id, variables } = known;
  const why = missing.isToldSetup
    ? `is in the catalog of this gateway, but its vendor has no key here: set ${variables.join(" or ")}.`
    : "is not offered by this gateway.";
  return invalidInput(`The model ${id} ${why} ${hintOf(missing)}`, param);
}

/** A model that another operation serves. */
export function refuseModality({ id, modality }: Pick<Model, "id" | "modality">): AppError {
  const { route, field } = MODALITY_TRAITS[modality];
  return invalidInput(`The model ${id} is of modality ${modality}: use ${route}${field === null ? "" : ` (GraphQL: ${field})`}.`, "model");
}

export function quote(text: string): string {
  return JSON.stringify(text.length > QUOTED_CHARS_MAX ? `${text.slice(0, QUOTED_CHARS_MAX)}…` : text);
}

function hintOf({ name, served, dormant, isAnyThere, callable, isToldSetup }: Missing): string {
  const kind = served.length === MODALITIES.length ? "model" : `model of modality ${served.join(" or ")}`;
  if (callable.length > 0)
    return `The closest are: ${closest(callable, name ?? "", CLOSEST)
      .map(({ id }) => id)
      .join(", ")}.`;
  if (isAnyThere) return `This key may use no ${kind}.`;
  if (!isToldSetup) return `This gateway has no ${kind}.`;
  const variables = new Set(dormant.filter(({ modality }) => served.includes(modality)).flatMap((model) => model.variables));
  const vendors = variables.size === 0 ? "" : `set ${[...variables].join(" or ")} for those of a vendor, or `;
  return `This gateway has no ${kind}: ${vendors}add one with MODELS_FILE.`;
}
