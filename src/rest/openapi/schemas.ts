/** Schemas that several routes share. Objects of answers stay open where upstreams and later versions add fields. */
import * as z from "zod";
import { json } from "./answer.js";

export const credits = z.number().describe("An amount in credits. One credit is worth one US dollar.");
export const seconds = z.int().describe("A Unix time in seconds.");
export const nullableText = z.string().nullable();
export const amount = z.int().min(0);
/** ISO 8601. */
export const timeText = z.string().meta({ format: "date-time" });
/** A date of the handler's, ISO 8601 in the answer. */
export const time = z.date();
export const calledModel = z.string().describe("The ID of the requested model. `X-Model-Used` has the model that answered.");

export const STREAMED = "With `stream: true`, the answer is a stream of server-sent events.";

// Content of examples.

export const HELLO = [{ role: "user", content: "Hello!" }];
export const MILL = "A mill by a river";
export const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
/** The ID of the pixel after its upload. */
export const PIXEL_ID = "497790947d466676";

export const pathId = (description: string) => z.string().min(1).describe(description);
export const cursorText = "The `nextCursor` of the previous page.";

/** A prompt in a path, whose handler or service refuses blank text. */
export const pathText = (description: string) => z.string().meta({ pattern: "\\S", description });
export const nonBlankPathText = (description: string) =>
  pathText(description)
    .refine((text) => text.trim() !== "", "must not be empty")
    .meta({ pattern: "\\S", description });

export const error = json(
  "Error",
  z.object({
    status: z.int(),
    success: z.literal(false),
    error: z.object({
      code: z.string(),
      message: z.string(),
      type: z.string(),
      param: nullableText,
      requestId: z.string(),
      timestamp: timeText,
      details: z.looseObject({}).optional(),
    }),
  }),
);
export const oauthError = json(
  "OAuthError",
  z.object({ error: z.string().describe("The error code of RFC 6749 or RFC 8628."), error_description: z.string() }),
);
