/**
 * Input common to registered models and agents (docs/spec/agents.md#record, docs/spec/community-models.md). One schema each for both faces.
 */
import { z } from "zod";
import { MODEL_DESCRIPTION_CHARS_MAX, MODEL_NAME_CHARS_MAX, MODEL_TITLE_CHARS_MAX, REQUIRED_SAFETY_FEATURES_MAX } from "../../limits.js";
import { SAFETY_FEATURES } from "../catalog/model.js";
import { distinct, shownText, storableText } from "../requests/input.js";

/** For text that is trimmed before it is measured. */
const NOT_BLANK = { allOf: [{ pattern: "\\S" }] };
/** See docs/spec/limits.md. */
const NAME_PATTERN = /^[A-Za-z0-9._:-]+$/;

/** The last part of the callable id. */
export const modelName = z
  .string()
  .min(1)
  .max(MODEL_NAME_CHARS_MAX)
  .regex(NAME_PATTERN, "may only hold letters, digits and the characters . _ : -");

export const modelTitle = shownText.trim().min(1).max(MODEL_TITLE_CHARS_MAX).meta(NOT_BLANK);

/** Null when there is none; an empty text is null. */
export const modelDescription = storableText
  .max(MODEL_DESCRIPTION_CHARS_MAX)
  .nullable()
  .transform((text) => (text === "" ? null : text));

export const modelVisibility = z.enum(["private", "public"]);
export type ModelVisibility = z.output<typeof modelVisibility>;

export const requiredSafetyFeatures = distinct(z.array(z.enum(SAFETY_FEATURES)).max(REQUIRED_SAFETY_FEATURES_MAX));
