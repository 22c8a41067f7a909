/** Composes vendor keys. */
import type { Clock } from "../../lib/clock.js";
import type { OutboundGuard } from "../../lib/outbound-guard.js";
import type { Counters } from "../../store/counters.js";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { Catalog } from "../catalog/catalog.js";
import type { SecretBox } from "../secrets/secret-box.js";
import { VendorKeyCheck } from "./check.js";
import { VendorKeys } from "./vendor-keys.js";

interface Dependencies {
  readonly database: Database;
  readonly catalog: Catalog;
  readonly outbound: OutboundGuard;
  readonly counters: Counters;
  readonly events: Events;
}

export function createVendorKeys(dependencies: Dependencies, box: SecretBox, clock: Clock, feeShare: bigint): VendorKeys {
  return new VendorKeys({ ...dependencies, check: new VendorKeyCheck(dependencies), box, clock, feeShare });
}
