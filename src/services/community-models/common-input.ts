/** What is said of every registered model and every agent alike (Spec 2.7, 2.8, 4.7). One schema each, for both faces. */
import { z } from "zod";
import {
  MODEL_DESCRIPTION_CHARS_MAX,
  MODEL_NAME_CHARS_MAX,
  MODEL_TITLE_CHARS_MAX,
  REQUIRED_SAFETY_FEATURES_MAX,
} from "../../limits-community.js";
import { SAFETY_FEATURES } from "../catalog/model.js";
import { storableText } from "../input.js";

/** Spec 8. */
const NAME_PATTERN = /^[A-Za-z0-9._:-]+$/;

/** The last part of the callable id. */
export const modelName = z
  .string()
  .min(1)
  .max(MODEL_NAME_CHARS_MAX)
  .regex(NAME_PATTERN, "may only hold letters, digits and the characters . _ : -");

export const modelTitle = storableText.trim().min(1).max(MODEL_TITLE_CHARS_MAX);

/** Null when there is none: an empty text and null both say so. */
export const modelDescription = storableText
  .max(MODEL_DESCRIPTION_CHARS_MAX)
  .nullable()
  .transform((text) => (text === "" ? null : text));

export const modelVisibility = z.enum(["private", "public"]);
export type ModelVisibility = z.output<typeof modelVisibility>;

export const requiredSafetyFeatures = z.array(z.enum(SAFETY_FEATURES)).max(REQUIRED_SAFETY_FEATURES_MAX).superRefine(refuseDuplicates);

/** Names the first item that is there a second time. A list may be long: it is looked through once. */
export function refuseDuplicates(items: readonly string[], issues: z.RefinementCtx<readonly string[]>): void {
  const seen = new Set<string>();
  const place = items.findIndex((item) => {
    if (seen.has(item)) return true;
    seen.add(item);
    return false;
  });
  if (place !== -1) issues.addIssue({ code: "custom", path: [place], message: "is there twice", input: items as string[] });
}
