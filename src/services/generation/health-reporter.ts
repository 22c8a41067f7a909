/** What generations tell of the models that they call, each candidate for itself. */
import type { KeyCaller, SessionCaller } from "../../context.js";
import type { Model } from "../catalog/model.js";

export interface HealthReporter {
  /** The whole answer came. */
  succeeded(caller: KeyCaller | SessionCaller, model: Model): void;
  /** It was not answered, or not to the end, by no fault of the caller's. */
  failed(caller: KeyCaller | SessionCaller, model: Model): void;
  /** Its upstream failed with that, whoever is to blame. */
  upstreamFailed(model: Model, error: unknown): void;
}
