import { z } from "zod";
import { ownValue } from "./own-values.js";

interface PairBounds {
  readonly countMax: number;
  readonly nameCharsMax: number;
  readonly valueCharsMax: number;
}

/** Texts by names that the client chooses. Stops at the first wrong one, while a record of zod's reads all. */
export function textPairs({ countMax, nameCharsMax, valueCharsMax }: PairBounds) {
  const problemOf = (name: string, value: unknown) => {
    if (name.length > nameCharsMax) return `must have a name of at most ${nameCharsMax} characters`;
    if (typeof value !== "string") return "expected a string";
    return value.length > valueCharsMax ? `must have at most ${valueCharsMax} characters` : null;
  };
  return z
    .looseObject({})
    .superRefine((pairs, issues) => {
      const names = Object.keys(pairs);
      if (names.length > countMax)
        return issues.addIssue({ code: "custom", message: `must have at most ${countMax} fields`, input: pairs });
      for (const name of names) {
        const message = problemOf(name, ownValue(pairs, name));
        if (message !== null) return issues.addIssue({ code: "custom", path: [name], message, input: pairs });
      }
    })
    .transform((pairs) => pairs as Readonly<Record<string, string>>)
    .meta({
      maxProperties: countMax,
      propertyNames: { type: "string", maxLength: nameCharsMax },
      additionalProperties: { type: "string", maxLength: valueCharsMax },
    });
}
