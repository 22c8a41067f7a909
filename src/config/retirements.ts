/** The variable about the retirement of models (docs/spec/models.md#retirement). */
import * as z from "zod";

/** Unspecified. */
const MODELS_MAX = 500;
const ENTRY_PATTERN = /^([^=\s]{1,253})=(never|\d{4}-\d{2}-\d{2})$/;

/** `openai/gpt-4o=2027-01-31, mistral/large=never`: dates by the ids of models; null: never. */
function retirements() {
  return z.string().transform((value, ctx): ReadonlyMap<string, Date | null> => {
    const dates = new Map<string, Date | null>();
    for (const entry of value.split(",").map((text) => text.trim())) {
      if (entry === "") continue;
      const [, id = "", text = ""] = ENTRY_PATTERN.exec(entry) ?? [];
      const date = text === "never" ? null : new Date(`${text}T00:00:00Z`);
      const isDate = date === null || (!Number.isNaN(date.getTime()) && date.toISOString().startsWith(text));
      if (id === "" || !isDate || dates.size >= MODELS_MAX) {
        ctx.addIssue(`must be a list of at most ${MODELS_MAX} entries such as openai/gpt-4o=2027-01-31 or openai/gpt-4o=never`);
        return z.NEVER;
      }
      dates.set(id, date);
    }
    return dates;
  });
}

export const RETIREMENT_VARIABLES = { MODEL_RETIREMENTS: retirements().default(new Map()) };
