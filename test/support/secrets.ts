/** What only a deployment knows, for tests that write rows as the gateway does and ask with tokens that it gives out. */
import { type Clock, systemClock } from "../../src/lib/clock.js";
import { RunTokens } from "../../src/services/agents/run-tokens.js";
import { SecretBox } from "../../src/services/secrets/secret-box.js";
import type { TestApp } from "./app.js";

/** Of the columns that are kept sealed. */
export function secretBoxOf({ infrastructure }: TestApp): SecretBox {
  return new SecretBox(infrastructure.secrets.sealing("columns"));
}

/** Issues tokens of agents at work. */
export function runTokensOf({ infrastructure }: TestApp, clock: Clock = systemClock): RunTokens {
  return new RunTokens(infrastructure.secrets.signing("run tokens"), infrastructure.keyCache, { findById: async () => null }, clock);
}
