/** Input of uploads and lists of variant B: one set of schemas for both faces (docs/spec/media.md#direct-uploads). */
import * as z from "zod";
import { AppError } from "../../errors.js";
import { storableText } from "../requests/input.js";
import { MEDIA_NAME_CHARS_MAX, MEDIA_OBJECT_BYTES_MAX, MEDIA_TAGS_MAX, MEDIA_TYPE_CHARS_MAX } from "./limits.js";

const TAG_PATTERN = /^[a-z0-9][a-z0-9_.:-]{0,127}$/;
/** RFC 6838, 4.2, with or without parameters. */
const MEDIA_TYPE_PATTERN = /^[a-z0-9][a-z0-9!#$&^_.+-]*\/[a-z0-9][a-z0-9!#$&^_.+-]*\s*(?:;[\x20-\x7e]*)?$/i;

/** Lower-cased before validation. */
export const mediaTag = z
  .string()
  .transform((tag) => tag.toLowerCase())
  .refine((tag) => TAG_PATTERN.test(tag), "must have 1 to 128 of a-z, 0-9 and _.:- and begin with a letter or a digit")
  .meta({ pattern: "^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$" });

export const createUploadInput = z.strictObject({
  /** A type that is neither text nor detectable from bytes becomes application/octet-stream. */
  contentType: z.string().max(MEDIA_TYPE_CHARS_MAX).regex(MEDIA_TYPE_PATTERN, "must be a media type such as image/png"),
  /** Exact bytes. */
  size: z.int().min(1),
  name: storableText.min(1).max(MEDIA_NAME_CHARS_MAX).nullish(),
  tags: z
    .array(mediaTag)
    .transform((tags) => [...new Set(tags)])
    .refine((tags) => tags.length <= MEDIA_TAGS_MAX, `must have at most ${MEDIA_TAGS_MAX} items`)
    .nullish(),
});
export type CreateUploadInput = z.infer<typeof createUploadInput>;

export const listTaggedInput = z.object({ tag: mediaTag });

/** A larger size is PAYLOAD_TOO_LARGE, no other error (docs/spec/media.md#direct-uploads). */
export function assertObjectSize(size: number): void {
  if (size <= MEDIA_OBJECT_BYTES_MAX) return;
  throw new AppError("PAYLOAD_TOO_LARGE", `A file may have at most ${MEDIA_OBJECT_BYTES_MAX} bytes.`, { param: "size" });
}
