/** The values of a query string, which come as text: read strictly, so that nothing is guessed (decisions "Generation"). */
import * as z from "zod";

/** true, false, 1 and 0 only; described as the boolean that it is. */
export const queryFlag = z
  .enum(["true", "false", "1", "0"], "expected true, false, 1 or 0")
  .transform((value) => value === "true" || value === "1")
  .meta({ enum: undefined, type: "boolean" });

/** Digits alone, with a minus or without: `1e3`, `5.0` and ` 5` are refused. */
export const queryWholeNumber = z
  .string()
  .regex(/^-?\d{1,15}$/, "expected a whole number")
  .transform(Number);
