/** A generation that is ready to run: `Generations.run` admits, holds, calls, meters and charges it, whoever waits for the answer. */
import type { MediaFile } from "../../../providers/media.js";
import type { GenerationWork } from "../generations.js";
import type { GenerationPlan } from "../plan.js";

export interface PreparedGeneration<Answer> {
  readonly plan: GenerationPlan;
  readonly work: GenerationWork<Answer>;
  readonly toFile: (answer: Answer) => MediaFile;
}
