/** Converts input to the terms of a model, and terms to columns. */
import { invalidInput } from "../../errors.js";
import { Prisma } from "../../store/generated/prisma/client.js";
import { PRICE_FIELDS, type PriceField, type StatedPrices, usedPriceFields } from "../catalog/pricing.js";
import type { UpdateCommunityModelInput } from "./models-input.js";
import type { RequestedTerms, TermsPlan } from "./pending-change.js";
import { applied, type CommunityModelRow } from "./record.js";
import type { ChangedModelRow } from "./repository.js";
import { basisOf } from "./view.js";

type UpdateField = keyof UpdateCommunityModelInput;

const COMMON_FIELDS = ["name", "title", "description", "visibility", "requiredSafetyFeatures"] as const satisfies readonly UpdateField[];
const UPSTREAM_FIELDS = ["upstreamModel", "inputModalities", "perUserRpm"] as const satisfies readonly UpdateField[];
const PROXY_FIELDS: readonly UpdateField[] = [
  ...COMMON_FIELDS,
  ...UPSTREAM_FIELDS,
  ...["bearerToken" as const, "imagePricing" as const, "advertised" as const, "paidOnly" as const, "fallbacks" as const],
  ...PRICE_FIELDS,
];
const ENDPOINT_AGENT_FIELDS: readonly UpdateField[] = [...COMMON_FIELDS, ...UPSTREAM_FIELDS, "outputModalities", "api", "url"];

/** Throws BAD_REQUEST naming the first field that a model of this type and modality does not have. */
export function assertHasFields({ type, modality }: CommunityModelRow, input: UpdateCommunityModelInput): void {
  if (type === "prompt_agent" || type === "code_agent") {
    throw invalidInput("This model is an agent, which is changed as an agent: PATCH /account/agents/{id}, updateAgent.");
  }
  const fields =
    type === "endpoint_agent" ? ENDPOINT_AGENT_FIELDS : [...PROXY_FIELDS, ...(modality === "text" ? TEXT_FIELDS : MEDIA_FIELDS)];
  const stranger = (Object.keys(input) as UpdateField[]).find((field) => input[field] !== undefined && !fields.includes(field));
  if (stranger === undefined) return;
  const what = type === "endpoint_agent" ? "An endpoint agent" : `A model of modality ${modality}`;
  throw invalidInput(`${what} has no ${stranger}.`, stranger);
}

const TEXT_FIELDS: readonly UpdateField[] = ["api", "url"];
const MEDIA_FIELDS: readonly UpdateField[] = ["baseUrl"];

type PricesInput = Readonly<Partial<Record<PriceField, bigint | null | undefined>>>;

export function statedPrices(input: PricesInput): StatedPrices {
  return Object.fromEntries(PRICE_FIELDS.flatMap((field) => (typeof input[field] === "bigint" ? [[field, input[field]]] : [])));
}

export function requestedTerms(input: UpdateCommunityModelInput): RequestedTerms {
  const { visibility, paidOnly, imagePricing } = input;
  const prices = Object.fromEntries(PRICE_FIELDS.flatMap((field) => (input[field] === undefined ? [] : [[field, input[field]]])));
  return { visibility, paidOnly, imagePricing, prices };
}

/** Throws BAD_REQUEST naming a price that the modality, or the image pricing, does not use. */
export function assertUsedPrices(modality: CommunityModelRow["modality"], { terms, scheduled }: TermsPlan): void {
  for (const each of scheduled ? [terms, applied(terms, scheduled.change)] : [terms]) {
    const basis = basisOf({ modality }, each);
    const used = usedPriceFields(basis);
    const unused = PRICE_FIELDS.find((field) => !used.includes(field) && (each.prices[field] ?? 0n) > 0n);
    if (unused === undefined) continue;
    const kind = modality === "image" ? `image, priced by ${each.imagePricing}` : modality;
    throw invalidInput(`A model of modality ${kind}, is not charged by ${unused}: it uses ${used.join(", ")}.`, unused);
  }
}

/** All columns of a plan, with due changes applied. */
export function termsColumns({ terms, scheduled }: TermsPlan) {
  const { visibility, paidOnly, imagePricing, prices } = terms;
  const stated = Object.fromEntries(PRICE_FIELDS.map((field) => [field, prices[field] ?? null])) as Record<PriceField, bigint | null>;
  return {
    ...{ visibility, paidOnly, imagePricing, ...stated },
    pending: scheduled ? (scheduled.change as Prisma.InputJsonObject) : Prisma.DbNull,
    pendingEffectiveAt: scheduled?.effectiveAt ?? null,
  } satisfies ChangedModelRow;
}
