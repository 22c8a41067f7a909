/** What comes out of a guest's process, checked: it may be anything. */
import { z } from "zod";
import { FrameError } from "./frames.js";
import type { FromGuest } from "./messages.js";

/** Unspecified: of one message. */
const HEADERS_MAX = 64;
const PATH_CHARS_MAX = 8_192;
const NAME_CHARS_MAX = 256;

const id = z.int().min(1).max(Number.MAX_SAFE_INTEGER);
const headers = z.array(z.tuple([z.string(), z.string()])).max(HEADERS_MAX);
const name = z.string().max(NAME_CHARS_MAX);

const fromGuest: z.ZodType<FromGuest> = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("fetch"), id, method: name, path: z.string().max(PATH_CHARS_MAX), headers }),
  z.strictObject({ type: z.literal("tool"), id, server: name, tool: name, args: z.unknown() }),
  z.strictObject({ type: z.literal("pull"), id }),
  z.strictObject({ type: z.literal("cancel"), id }),
  z.strictObject({ type: z.literal("answer"), status: z.int().min(200).max(599), headers }),
  z.strictObject({ type: z.literal("data") }),
  z.strictObject({ type: z.literal("end") }),
  z.strictObject({ type: z.literal("failed"), detail: z.string() }),
]);

/** Throws FrameError for what is no message. */
export function parseFromGuest(header: unknown): FromGuest {
  const parsed = fromGuest.safeParse(header);
  if (!parsed.success) throw new FrameError("A message of the guest's is none.");
  return parsed.data;
}
