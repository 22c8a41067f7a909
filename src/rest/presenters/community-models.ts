/** Community models as REST shows them (docs/spec/community-models.md#record). */
import { formatPicocredits } from "../../lib/money.js";
import { PRICE_FIELDS, type PriceField } from "../../services/catalog/pricing.js";
import type { ModelProvider } from "../../services/community-models/community-models.js";
import type { CommonView, CommunityModelView, FallbackCandidate, PendingView, ProxyView } from "../../services/community-models/view.js";

export function toModelList(models: readonly CommunityModelView[], { name, url, iconUrl }: ModelProvider) {
  return { data: models.map(toCommunityModel), provider: { name, url, iconUrl } };
}

export function toCommunityModel(view: CommunityModelView) {
  switch (view.type) {
    case "proxy":
      return { ...toCommon(view), ...toProxy(view), type: view.type };
    case "endpoint_agent": {
      const { type, inputModalities, outputModalities, api, url, upstreamModel, perUserRpm } = view;
      return { ...toCommon(view), inputModalities, outputModalities, api, url, upstreamModel, perUserRpm, type };
    }
    default:
      return { ...toCommon(view), type: view.type };
  }
}

export function toFallbackCandidate({ modelId, title, description, isOwn, prices }: FallbackCandidate) {
  return { modelId, title, description, isOwn, ...toPrices(prices) };
}

function toCommon(view: CommonView) {
  const { id, modelId, name, title, description, visibility, requiredSafetyFeatures, pending, createdAt, updatedAt } = view;
  return {
    ...{ id, modelId, name, title, description, visibility, requiredSafetyFeatures },
    ...{ pending: pending && toPending(pending), createdAt, updatedAt },
  };
}

function toProxy(view: ProxyView) {
  const { upstreamModel, imagePricing, inputModalities, advertised, perUserRpm, paidOnly, fallbacks, prices, modality, api, url } = view;
  return {
    ...{ upstreamModel, imagePricing, inputModalities, advertised, perUserRpm, paidOnly, fallbacks },
    ...{ ...toPrices(prices), modality },
    ...(modality === "text" ? { api, url } : { baseUrl: url }),
  };
}

/** What stays is left out. */
function toPending({ effectiveAt, visibility, paidOnly, imagePricing, prices }: PendingView) {
  return {
    effectiveAt,
    ...(visibility !== null && { visibility }),
    ...(paidOnly !== null && { paidOnly }),
    ...(imagePricing !== null && { imagePricing }),
    ...toPrices(prices),
  };
}

/** Credits per unit, as JSON numbers; never calculated with. */
function toPrices(prices: Readonly<Partial<Record<PriceField, bigint>>>): Partial<Record<PriceField, number>> {
  const given = PRICE_FIELDS.flatMap((field): [PriceField, number][] => {
    const price = prices[field];
    return price === undefined ? [] : [[field, Number(formatPicocredits(price))]];
  });
  return Object.fromEntries(given);
}
