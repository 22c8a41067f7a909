/**
 * Reads multipart/form-data bodies within bounds: files are held in memory, or passed on as they arrive. multer reads from a stream of our
 * own, so that a refused body is left unread at once; the error handler deals with the rest, as for JSON.
 */
import type { IncomingMessage } from "node:http";
import { type Readable, Transform, type Writable } from "node:stream";
import type { Request, Response } from "express";
import type { StorageEngine } from "multer";
import type * as z from "zod";
import { AppError, invalidInput, payloadTooLarge, wrongField } from "../errors.js";
import { ownValue, setOwnValue } from "../lib/own-values.js";
import { findUnstorable, unstorableIn } from "../lib/storable-text.js";
import type { BodyAllowance } from "../services/requests/body-budget.js";
import { assertPlain, BodyAborted, declaredBytesOf } from "./body.js";
import {
  FORM_FIELD_BYTES_MAX,
  FORM_FIELD_DEPTH_MAX,
  FORM_FIELD_NAME_BYTES_MAX,
  FORM_FIELDS_MAX,
  FORM_LIST_ITEMS_MAX,
  FORM_PART_HEAD_BYTES_MAX,
} from "./limits.js";

/** An uploaded file. Its bytes are not an enumerable property, so that code that walks through input skips them. */
export class UploadedFile {
  readonly #bytes: Uint8Array;

  constructor(
    /** The last part of the path that the client sent: unchecked. */
    readonly name: string,
    /** As the client sent it, without parameters. */
    readonly contentType: string,
    bytes: Uint8Array,
  ) {
    this.#bytes = bytes;
  }

  get bytes(): Uint8Array {
    return this.#bytes;
  }
}

export type UploadedFiles = Readonly<Record<string, readonly UploadedFile[]>>;

export interface FileRule {
  /** The most files of the field; they may also be named `name[]`. */
  readonly countMax: number;
  /** Whether the field may also be text, such as an address. */
  readonly mayBeText?: boolean;
  /** Whether the form is refused without it. */
  readonly isRequired?: boolean;
}

export interface FormRules {
  readonly files: Readonly<Record<string, FileRule>>;
  /** Per file. */
  readonly fileBytesMax: number;
  /** Of the whole body. */
  readonly bytesMax: number;
}

/** A route's form: the schema checks all fields that are no files. */
export interface FormOptions<Body> extends FormRules {
  readonly fields: z.ZodType<Body>;
}

export interface Form {
  /** Texts by name; `name[]` is a list, `name[part]` an object. Without a prototype. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly files: UploadedFiles;
}

/** The destination of arriving files. */
export interface FileSink<Received> {
  /** Reads `content` to its end, or rejects. */
  receive(content: AsyncIterable<Uint8Array>, field: string): Promise<Received>;
  /** Deletes files of a refused form. */
  discard(received: Received): Promise<void>;
}

export interface ReceivedFile<Received> extends Omit<UploadedFile, "bytes"> {
  readonly field: string;
  readonly received: Received;
}

const FORM_MEDIA_TYPE = /^multipart\/form-data\s*(?:;|$)/i;

export function isForm(contentType: string | null | undefined): boolean {
  return FORM_MEDIA_TYPE.test(contentType ?? "");
}

/**
 * Throws UNSUPPORTED_MEDIA_TYPE, PAYLOAD_TOO_LARGE (the body or a file), SERVICE_UNAVAILABLE, or BAD_REQUEST: a field that takes no file or
 * too many, a repeated field, a truncated form.
 */
export async function readForm(req: IncomingMessage, rules: FormRules, allowance: BodyAllowance): Promise<Form> {
  const { default: multer } = await import("multer");
  const { fields, files } = await parse(req, rules, multer.memoryStorage(), allowance);
  return { fields, files: groupByField(files) };
}

/** As above, with files in the sink. Discards the files of a refused form. */
export async function receiveForm<Received>(
  req: IncomingMessage,
  rules: FormRules,
  sink: FileSink<Received>,
  allowance: BodyAllowance,
): Promise<{ readonly fields: Form["fields"]; readonly files: readonly ReceivedFile<Received>[] }> {
  const storage = new SinkStorage(sink);
  try {
    const { fields, files } = await parse(req, rules, storage, allowance);
    const received = await Promise.all(
      files.map(async (file) => ({
        field: bareName(file.fieldname),
        name: file.originalname,
        contentType: file.mimetype,
        received: await storage.takeReceived(file),
      })),
    );
    return { fields, files: received };
  } catch (error) {
    await storage.discardAll();
    throw error;
  }
}

async function parse(req: IncomingMessage, rules: FormRules, storage: StorageEngine, allowance: BodyAllowance): Promise<Parsed> {
  if (!isForm(req.headers["content-type"])) {
    throw new AppError("UNSUPPORTED_MEDIA_TYPE", "The body must be a form: send Content-Type: multipart/form-data.");
  }
  assertPlain(req);
  const parsed = await readParts(req, rules, storage, allowance);
  const unstorable = findUnstorable(parsed.fields);
  if (unstorable !== null) throw wrongField(unstorable.path, unstorable.problem);
  for (const [name, { mayBeText, isRequired }] of Object.entries(rules.files)) {
    const isText = Object.hasOwn(parsed.fields, name);
    if (isRequired && !isText && !parsed.files.some((file) => bareName(file.fieldname) === name)) throw wrongField(name, "is required");
    if (isText && !mayBeText) throw wrongField(name, "must be a file");
  }
  return parsed;
}

type MulterFile = Express.Multer.File;

interface Parsed {
  readonly fields: Record<string, unknown>;
  readonly files: readonly MulterFile[];
}

async function readParts(req: IncomingMessage, rules: FormRules, storage: StorageEngine, allowance: BodyAllowance): Promise<Parsed> {
  const { default: multer } = await import("multer");
  const { bytesMax } = rules;
  const most = allowance.begin({
    ...{ declaredBytes: declaredBytesOf(req), bytesMax, hasFiles: true },
    onSlow: (error) => feed.destroy(error),
  });
  const feed = new Feed(most, allowance);
  const read = multer({
    storage,
    defParamCharset: "utf8",
    limits: {
      fileSize: rules.fileBytesMax,
      fieldSize: FORM_FIELD_BYTES_MAX,
      fieldNameSize: FORM_FIELD_NAME_BYTES_MAX,
      fields: FORM_FIELDS_MAX,
      // One more than allowed, so that the error names the field.
      files: filesMax(rules) + 1,
      parts: partsMax(rules) + 2,
      fieldNestingDepth: FORM_FIELD_DEPTH_MAX,
      fieldArrayIndexLimit: FORM_LIST_ITEMS_MAX - 1,
    },
    fileFilter: createFileFilter(rules),
    streamHandler: (_req: unknown, parser: Writable) => feed.into(parser),
  } as Parameters<typeof multer>[0]).any();
  const source = Object.assign(feed, { headers: req.headers }) as unknown as Request &
    Partial<{ body: Parsed["fields"]; files: MulterFile[] }>;
  const onClose = () => {
    if (!req.complete) feed.destroy();
  };
  req.on("close", onClose);
  if (req.destroyed) onClose();
  try {
    await new Promise<void>((resolve, reject) => {
      read(source, undefined as unknown as Response, (error: unknown) => (error ? reject(error) : resolve()));
      req.pipe(feed);
    });
  } catch (error) {
    if (req.destroyed && !req.complete) throw new BodyAborted();
    throw toFormError(error, rules);
  } finally {
    allowance.end();
    req.off("close", onClose);
    req.unpipe(feed);
  }
  if (!source.body) throw invalidInput("The form is empty.");
  return { fields: source.body, files: Array.isArray(source.files) ? source.files : [] };
}

function filesMax({ files }: FormRules): number {
  return Object.values(files).reduce((sum, { countMax }) => sum + countMax, 0);
}

function partsMax(rules: FormRules): number {
  return FORM_FIELDS_MAX + filesMax(rules);
}

/** Between the request and the parser: counts bytes, and ends when the parser gives up. */
class Feed extends Transform {
  private size = 0;
  private readonly unread = new Set<Readable>();
  private readonly names = new Set<string>();

  constructor(
    private readonly bytesMax: number,
    private readonly allowance: BodyAllowance,
  ) {
    super();
  }

  into(parser: Writable): void {
    parser.on("field", (name: unknown) => this.see(name));
    // multer refuses a file that is too long, but would first read it to its end.
    parser.on("file", (_name: unknown, file: Readable) => {
      this.unread.add(file);
      file.once("close", () => this.unread.delete(file));
      file.once("limit", () => this.destroy());
    });
    // multer unpipes when it is done, also after a refusal; it must not wait for the rest of the body then.
    parser.once("unpipe", () => this.destroy());
    this.pipe(parser);
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: (error: Error | null, chunk?: Buffer) => void): void {
    this.size += chunk.length;
    try {
      this.allowance.came(chunk.length);
      if (this.size > this.bytesMax) throw payloadTooLarge(this.bytesMax);
    } catch (error) {
      done(error as Error);
      return;
    }
    done(null, chunk);
  }

  /** Fails readers of unfinished files, so that they do not wait. */
  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (!this.readableEnded) for (const file of this.unread) file.destroy(error ?? new Error("the form was cut"));
    done(error);
  }

  /** Only list fields may repeat. */
  private see(name: unknown): void {
    if (typeof name !== "string" || name.endsWith("[]")) return;
    if (this.names.has(name)) this.destroy(wrongField(name, "may be given only once"));
    this.names.add(name);
  }
}

/** multer's storage for files that are passed on. */
class SinkStorage<Received> implements StorageEngine {
  private readonly received: Promise<Received>[] = [];

  constructor(private readonly sink: FileSink<Received>) {}

  _handleFile(_req: unknown, file: MulterFile, done: (error?: unknown, info?: Partial<MulterFile>) => void): void {
    const received = this.sink.receive(file.stream, bareName(file.fieldname));
    // multer returns copies of files, and only this property survives.
    const path = String(this.received.push(received) - 1);
    received.then(() => done(null, { path }), done);
  }

  /** The files are discarded with the form. */
  _removeFile(_req: unknown, _file: MulterFile, done: (error: Error | null) => void): void {
    done(null);
  }

  takeReceived({ path }: MulterFile): Promise<Received> {
    return this.received[Number(path)] ?? Promise.reject(new Error("The file was not received."));
  }

  async discardAll(): Promise<void> {
    for (const outcome of await Promise.allSettled(this.received)) {
      if (outcome.status === "fulfilled") await this.sink.discard(outcome.value);
    }
  }
}

function createFileFilter({ files }: FormRules) {
  const counts = new Map<string, number>();
  return (_req: unknown, file: MulterFile, done: (error: Error | null, isWanted?: boolean) => void) => {
    const name = bareName(file.fieldname);
    const rule = ownValue(files, name);
    const problem = unstorableIn(file.originalname);
    if (problem !== null) return done(wrongField(name, `its file name ${problem}`));
    if (!rule) return done(wrongField(name, "does not take a file"));
    const count = (counts.get(name) ?? 0) + 1;
    counts.set(name, count);
    if (count > rule.countMax) {
      const most = rule.countMax === 1 ? "one file" : `${rule.countMax} files`;
      return done(wrongField(name, `takes at most ${most}`));
    }
    done(null, true);
  };
}

function bareName(fieldName: string): string {
  return fieldName.replace(/\[\d*\]$/, "");
}

function groupByField(files: readonly MulterFile[]): UploadedFiles {
  const grouped: Record<string, UploadedFile[]> = {};
  for (const { fieldname, originalname, mimetype, buffer } of files) {
    const name = bareName(fieldname);
    setOwnValue(grouped, name, [...(ownValue(grouped, name) ?? []), new UploadedFile(originalname, mimetype, buffer)]);
  }
  return grouped;
}

/** busboy's message for both faults. */
const MALFORMED_HEAD = "Malformed part header";

function toFormError(error: unknown, rules: FormRules): unknown {
  if (error instanceof AppError || !(error instanceof Error)) return error;
  // The types lack some of multer's codes.
  const { code, field } = error as { readonly code?: string; readonly field?: string };
  const { fileBytesMax } = rules;
  switch (code) {
    case "LIMIT_FILE_SIZE":
      return new AppError("PAYLOAD_TOO_LARGE", `The file is larger than ${fileBytesMax} bytes.`, field ? { param: bareName(field) } : {});
    case "LIMIT_FIELD_VALUE":
      return field === undefined
        ? invalidInput(`A field is longer than ${FORM_FIELD_BYTES_MAX} bytes.`)
        : wrongField(field, `must have at most ${FORM_FIELD_BYTES_MAX} bytes`);
    case "LIMIT_FIELD_COUNT":
      return invalidInput(`The form has more than ${FORM_FIELDS_MAX} fields.`);
    case "LIMIT_FIELD_KEY":
      return invalidInput(`The form has a field whose name is longer than ${FORM_FIELD_NAME_BYTES_MAX} bytes.`);
    case "LIMIT_FIELD_NESTING":
      return wrongField(field ?? "", `may be nested at most ${FORM_FIELD_DEPTH_MAX} levels deep`);
    case "LIMIT_FIELD_ARRAY_INDEX":
      return wrongField(field ?? "", `may have at most ${FORM_LIST_ITEMS_MAX} items, numbered from 0`);
    case "LIMIT_FILE_COUNT":
      return invalidInput(`The form has more than ${filesMax(rules)} files.`);
    case "LIMIT_PART_COUNT":
      return invalidInput(`The form has more than ${partsMax(rules)} parts.`);
    case undefined:
      if (error.message === MALFORMED_HEAD) {
        return invalidInput(`The form is malformed: the head of a part is broken, or longer than ${FORM_PART_HEAD_BYTES_MAX} bytes.`);
      }
      // busboy's message, which names the syntax error and quotes nothing.
      return new AppError("BAD_REQUEST", `The form is malformed: ${error.message}.`, {
        details: { fieldErrors: {}, formErrors: [error.message] },
        cause: error,
      });
    default:
      return invalidInput(`The form is malformed: ${error.message}.`, field);
  }
}
