/**
 * multipart/form-data bodies, bounded in every direction: their files are held in memory, or handed on as they arrive. multer reads
 * them from a stream of our own, so that a body which is refused is left unread at once; what becomes of the rest is the error
 * handler's business, as with JSON.
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

/** A file as it came. Its bytes are no property, so that nothing which walks through an input walks through them. */
export class UploadedFile {
  readonly #bytes: Uint8Array;

  constructor(
    /** The last part of the path that the caller named: checked by nobody yet. */
    readonly name: string,
    /** As the caller says, without parameters. */
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
  /** How many files the field takes; they may also come as `name[]`. */
  readonly countMax: number;
  /** Whether the field may be text instead, such as an address. */
  readonly mayBeText?: boolean;
  /** Whether a form without it is refused. */
  readonly isRequired?: boolean;
}

export interface FormRules {
  /** The fields that take files, by name. */
  readonly files: Readonly<Record<string, FileRule>>;
  /** Of one file. */
  readonly fileBytesMax: number;
  /** Of the whole body. */
  readonly bytesMax: number;
}

/** A form as a route takes it: what is not a file is checked by the schema. */
export interface FormOptions<Body> extends FormRules {
  readonly fields: z.ZodType<Body>;
}

export interface Form {
  /** Texts by name; `name[]` is a list, `name[part]` an object. Without a prototype. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly files: UploadedFiles;
}

/** Where files go as they arrive. */
export interface FileSink<Received> {
  /** Reads `content` to its end, or rejects. */
  receive(content: AsyncIterable<Uint8Array>, field: string): Promise<Received>;
  /** For what was received of a form that is refused. */
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
 * Throws UNSUPPORTED_MEDIA_TYPE, PAYLOAD_TOO_LARGE (the body or a file), SERVICE_UNAVAILABLE, or BAD_REQUEST: a field that takes no file or too many, one
 * that is given twice, a form that ends too soon.
 */
export async function readForm(req: IncomingMessage, rules: FormRules, allowance: BodyAllowance): Promise<Form> {
  const { default: multer } = await import("multer");
  const { fields, files } = await parse(req, rules, multer.memoryStorage(), allowance);
  return { fields, files: groupByField(files) };
}

/** As above, with the files where the sink brought them. Nothing is left there of a form that is refused. */
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
      // Of the first file too many of a field, that field is told.
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

/** Stands between the request and the parser: counts bytes, and ends when the parser has given up. */
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
    // multer refuses a file that is too long, and would first read it to its end.
    parser.on("file", (_name: unknown, file: Readable) => {
      this.unread.add(file);
      file.once("close", () => this.unread.delete(file));
      file.once("limit", () => this.destroy());
    });
    // multer unpipes when it is done, also when it refuses; it must not wait for the rest of the body then.
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

  /** Whoever reads a file that will not be read to its end must not wait for it. */
  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (!this.readableEnded) for (const file of this.unread) file.destroy(error ?? new Error("the form was cut"));
    done(error);
  }

  /** Only lists repeat their name. */
  private see(name: unknown): void {
    if (typeof name !== "string" || name.endsWith("[]")) return;
    if (this.names.has(name)) this.destroy(wrongField(name, "may be given only once"));
    this.names.add(name);
  }
}

/** multer's place for files that go on as they arrive. */
class SinkStorage<Received> implements StorageEngine {
  private readonly received: Promise<Received>[] = [];

  constructor(private readonly sink: FileSink<Received>) {}

  _handleFile(_req: unknown, file: MulterFile, done: (error?: unknown, info?: Partial<MulterFile>) => void): void {
    const received = this.sink.receive(file.stream, bareName(file.fieldname));
    // The only thing that stays with the file: multer answers copies.
    const path = String(this.received.push(received) - 1);
    received.then(() => done(null, { path }), done);
  }

  /** What is received is discarded with the form. */
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

/** busboy's for both. */
const MALFORMED_HEAD = "Malformed part header";

/** multer's and busboy's words in ours. */
function toFormError(error: unknown, rules: FormRules): unknown {
  if (error instanceof AppError || !(error instanceof Error)) return error;
  // The types know fewer codes than multer has.
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
      // busboy's own: it names what is wrong with the syntax, and quotes nothing.
      return new AppError("BAD_REQUEST", `The form is malformed: ${error.message}.`, {
        details: { fieldErrors: {}, formErrors: [error.message] },
        cause: error,
      });
    default:
      return invalidInput(`The form is malformed: ${error.message}.`, field);
  }
}
