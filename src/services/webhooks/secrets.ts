/** The signing secrets of endpoints: made, kept encrypted, and for a while two at once after a rotation. */
import type { Clock } from "../../lib/clock.js";
import type { SecretBox } from "../secrets/secret-box.js";
import { WEBHOOK_PREVIOUS_SECRET_HOURS } from "./limits.js";
import { createWebhookSecret } from "./signature.js";

const HOUR_MS = 60 * 60 * 1000;
const TABLE = "webhook_endpoint";

export interface SealedSecrets {
  readonly endpointId: string;
  readonly secret: Uint8Array;
  readonly previousSecret: Uint8Array | null;
  readonly previousSecretExpiresAt: Date | null;
}

export class EndpointSecrets {
  constructor(
    private readonly box: SecretBox,
    private readonly clock: Clock,
  ) {}

  /** The secret as its owner sees it, this once, and as it is stored. */
  create(endpointId: string): { readonly text: string; readonly sealed: Uint8Array<ArrayBuffer> } {
    const text = createWebhookSecret();
    return { text, sealed: this.box.seal(placeOf(endpointId, "secret"), text) };
  }

  /** The secret that is being replaced, as it is stored beside the new one, and until when messages are signed with both. */
  retire(endpointId: string, secret: Uint8Array): { readonly sealed: Uint8Array<ArrayBuffer>; readonly expiresAt: Date } {
    const text = this.box.open(placeOf(endpointId, "secret"), secret);
    const expiresAt = new Date(this.clock.now().getTime() + WEBHOOK_PREVIOUS_SECRET_HOURS * HOUR_MS);
    return { sealed: this.box.seal(placeOf(endpointId, "previous_secret"), text), expiresAt };
  }

  /** Those that a message is signed with at this moment, the current one first. */
  open({ endpointId, secret, previousSecret, previousSecretExpiresAt }: SealedSecrets): string[] {
    const current = this.box.open(placeOf(endpointId, "secret"), secret);
    if (!previousSecret || !previousSecretExpiresAt || previousSecretExpiresAt <= this.clock.now()) return [current];
    return [current, this.box.open(placeOf(endpointId, "previous_secret"), previousSecret)];
  }
}

function placeOf(endpointId: string, column: string) {
  return { table: TABLE, rowId: endpointId, column };
}
