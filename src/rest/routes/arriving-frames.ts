/** Counts the bytes of a WebSocket's frames, which `ws` buffers until each is complete, as those of request bodies. Short frames are not counted. */
import { type AppError, payloadTooLarge } from "../../errors.js";
import type { BodyAllowance } from "../../services/requests/body-budget.js";
import { EVENT_BYTES_MAX, UNCOUNTED_BYTES_MAX } from "../response-limits.js";

export class ArrivingFrames {
  /** Of the frame that arrives; a chunk that also ends another one counts as its own. */
  private bytes = 0;
  private bytesMax = EVENT_BYTES_MAX;
  private allowance: BodyAllowance | null = null;

  /** `onRefused` is called when a frame is beyond a share of the gateway's memory, too large for the caller, or too slow. */
  constructor(
    private readonly allow: () => BodyAllowance,
    private readonly onRefused: (error: AppError) => void,
  ) {}

  readonly came = (chunk: Buffer): void => {
    this.bytes += chunk.length;
    if (this.bytes <= UNCOUNTED_BYTES_MAX) return;
    try {
      this.allowance ??= this.begin();
      this.allowance.came(this.bytes - this.allowance.bytes);
      if (this.bytes > this.bytesMax) throw payloadTooLarge(this.bytesMax);
    } catch (error) {
      this.onRefused(error as AppError);
    }
  };

  /** The frame is complete. The caller releases the allowance when the frame is no longer held. */
  end(): BodyAllowance | null {
    const { allowance } = this;
    allowance?.end();
    this.bytes = 0;
    this.allowance = null;
    return allowance;
  }

  private begin(): BodyAllowance {
    const allowance = this.allow();
    this.allowance = allowance;
    this.bytesMax = allowance.begin({ declaredBytes: null, bytesMax: EVENT_BYTES_MAX, onSlow: this.onRefused });
    return allowance;
  }
}
