/** Changes of routes for the audit log: flat texts without secrets. */
import type { ModelOverrides, RouteOverride } from "../catalog/route-overrides.js";
import { priceTexts } from "./changes.js";

type Facts = Readonly<Record<string, string | readonly string[] | null>>;

/** The parts of `one` that differ from `other`. */
export function factsOf(model: string, one: ModelOverrides, other: ModelOverrides): Facts {
  const others = new Set(other.routes.map(textOf));
  const routes = one.routes.map(textOf).filter((text) => !others.has(text));
  return { model, ...(one.routing !== other.routing && { routing: one.routing }), routes };
}

/** Such as `openai gpt-4o key=2 weight=3 enabled=false`. */
function textOf({ upstream, upstreamModel, key, isAdded, isEnabled, priority, weight, limits, prices }: RouteOverride): string {
  const settings = {
    ...{ key, added: isAdded || null, enabled: isEnabled, priority, weight },
    ...{ rpm: limits?.rpm, tpm: limits?.tpm, concurrent: limits?.concurrent },
    ...(prices && priceTexts(prices)),
  };
  const stated = Object.entries(settings).filter(([, value]) => value !== null && value !== undefined);
  return [upstream, upstreamModel, ...stated.map(([name, value]) => `${name}=${value}`)].join(" ");
}
