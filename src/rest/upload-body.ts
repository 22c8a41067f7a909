/**
 * What POST {media_url}/upload takes: a file as a form, as the body itself, or as base64 in JSON, brought on its way while it arrives;
 * or the announcement of a file that goes straight to the blob store (docs/spec/media.md#direct-uploads).
 */
import type { IncomingMessage } from "node:http";
import * as z from "zod";
import { wrongField } from "../errors.js";
import { isJson, type JsonObject, parseJsonObject, streamBody, streamJsonBody } from "../http/body.js";
import { type FileSink, isForm, receiveForm } from "../http/uploads.js";
import { MEDIA_NAME_CHARS_MAX, MEDIA_UPLOAD_BYTES_MAX } from "../services/files/limits.js";
import { createUploadInput } from "../services/files/media-objects-input.js";
import type { BodyAllowance } from "../services/requests/body-budget.js";
import { parseInput, storableText } from "../services/requests/input.js";
import { JsonFileReader } from "./json-file.js";

/** Beside the file: the boundaries and headers of a form, the other fields of a JSON body. */
const OVERHEAD_BYTES = 64 * 1024;
/** Some encoders escape a character of base64 with another one; the file itself is counted when it is decoded. */
const JSON_BYTES_MAX = Math.ceil(MEDIA_UPLOAD_BYTES_MAX / 3) * 4 * 2 + OVERHEAD_BYTES;
const FORM_RULES = {
  files: { file: { countMax: 1, isRequired: true } },
  fileBytesMax: MEDIA_UPLOAD_BYTES_MAX,
  bytesMax: MEDIA_UPLOAD_BYTES_MAX + OVERHEAD_BYTES,
};
const uploadInput = z.strictObject({
  /** Decoded while it arrived: what is left of it here is empty. */
  data: z
    .string()
    .meta({ minLength: 1, contentEncoding: "base64", pattern: "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$" }),
  contentType: storableText.max(MEDIA_NAME_CHARS_MAX).optional(),
  name: storableText.min(1).max(MEDIA_NAME_CHARS_MAX).optional(),
});

/** As they are described. */
export const UPLOAD_BODIES = {
  body: z.union([uploadInput, createUploadInput]),
  form: { ...FORM_RULES, fields: z.object({}) },
  isFile: true,
} as const;

export type UploadBody<Received> =
  | {
      readonly kind: "file";
      readonly received: Received;
      /** The field that it came in; null when it was the whole body. */
      readonly field: string | null;
      /** Null: not said. */
      readonly contentType: string | null;
      readonly name: string | null;
    }
  | { readonly kind: "announcement"; readonly body: JsonObject };

/** As a form's sink; the field is null when the file is the whole body. */
export interface UploadSink<Received> extends Omit<FileSink<Received>, "receive"> {
  receive(content: AsyncIterable<Uint8Array>, field: string | null): Promise<Received>;
}

/** Throws what the sink does, UNSUPPORTED_MEDIA_TYPE, PAYLOAD_TOO_LARGE, SERVICE_UNAVAILABLE or BAD_REQUEST; nothing is left with the sink then. */
export function readUploadBody<Received>(
  req: IncomingMessage,
  sink: UploadSink<Received>,
  allowance: BodyAllowance,
): Promise<UploadBody<Received>> {
  if (isForm(req.headers["content-type"])) return readFormFile(req, sink, allowance);
  return isJson(req) ? readJsonFile(req, sink, allowance) : readPlainFile(req, sink, allowance);
}

async function readFormFile<Received>(
  req: IncomingMessage,
  sink: UploadSink<Received>,
  allowance: BodyAllowance,
): Promise<UploadBody<Received>> {
  const { files } = await receiveForm(req, FORM_RULES, sink, allowance);
  const [file] = files;
  if (!file) throw wrongField("file", "is required");
  const { field, received, contentType, name } = file;
  return { kind: "file", received, field, contentType: contentType || null, name: name || null };
}

async function readJsonFile<Received>(
  req: IncomingMessage,
  sink: UploadSink<Received>,
  allowance: BodyAllowance,
): Promise<UploadBody<Received>> {
  const reader = new JsonFileReader("data", OVERHEAD_BYTES);
  const content = reader.read(streamJsonBody(req, allowance, JSON_BYTES_MAX));
  const first = await content.next();
  if (first.done) {
    const body = parseJsonObject(reader.rest());
    if (!Object.hasOwn(body, "data")) return { kind: "announcement", body };
    throw wrongField("data", "expected a string");
  }
  const received = await sink.receive(content, "data");
  try {
    const { contentType, name } = parseInput(uploadInput, parseJsonObject(reader.rest()));
    return { kind: "file", received, field: "data", contentType: contentType ?? null, name: name ?? null };
  } catch (error) {
    await sink.discard(received);
    throw error;
  }
}

async function readPlainFile<Received>(
  req: IncomingMessage,
  sink: UploadSink<Received>,
  allowance: BodyAllowance,
): Promise<UploadBody<Received>> {
  const received = await sink.receive(streamBody(req, allowance, MEDIA_UPLOAD_BYTES_MAX), null);
  return { kind: "file", received, field: null, contentType: req.headers["content-type"] ?? null, name: null };
}
