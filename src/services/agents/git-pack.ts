/**
 * Reads a pack from a git host (gitformat-pack) into memory. The host may be hostile: everything is counted before it is unpacked, nothing
 * is unpacked beyond its declared size, and an object's id is computed from its content.
 */
import { createHash } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { inflateSync } from "node:zlib";
import { applyDelta, readSize } from "./git-delta.js";
import { RepositoryError } from "./repository-error.js";

export interface GitObject {
  readonly type: "commit" | "tree" | "blob" | "tag";
  readonly bytes: Buffer;
}

export interface PackBounds {
  readonly objectsMax: number;
  readonly objectBytesMax: number;
  /** Of all objects, and of the deltas that some are made from. */
  readonly unpackedBytesMax: number;
}

/** A delta whose base, known by its place in the pack or its hash, has not been read yet. */
interface WaitingDelta {
  readonly offset: number;
  readonly delta: Buffer;
}

interface ReadyDelta extends WaitingDelta {
  readonly base: GitObject;
}

const HEADER_BYTES = 12;
const TRAILER_BYTES = 20;
const TYPES = { 1: "commit", 2: "tree", 3: "blob", 4: "tag" } as const;
const OFFSET_DELTA = 6;
const REFERENCE_DELTA = 7;
const CHUNK_BYTES_MIN = 64;
const CHUNK_BYTES_MAX = 64 * 1024;
/** Longest step between two turns of the event loop. */
const TURN_MS = 5;

/** The objects by id, 40 hexadecimal digits. Rejects with a RepositoryError, or with the signal's reason. */
export async function readPack(pack: Buffer, bounds: PackBounds, signal: AbortSignal): Promise<ReadonlyMap<string, GitObject>> {
  const reader = new PackReader(pack, bounds);
  let turnEnds = performance.now() + TURN_MS;
  while (reader.readNext()) {
    if (performance.now() < turnEnds) continue;
    await setImmediate();
    signal.throwIfAborted();
    turnEnds = performance.now() + TURN_MS;
  }
  return reader.finish();
}

class PackReader {
  private readonly objects = new Map<string, GitObject>();
  private readonly byOffset = new Map<number, GitObject>();
  private readonly waiting = new Map<number | string, WaitingDelta[]>();
  /** Deltas whose base is there, applied one by one, because there may be thousands. */
  private readonly ready: ReadyDelta[] = [];
  private left: number;
  private at = HEADER_BYTES;
  private unpackedBytes = 0;

  constructor(
    private readonly pack: Buffer,
    private readonly bounds: PackBounds,
  ) {
    const isPack = pack.length >= HEADER_BYTES + TRAILER_BYTES && pack.toString("latin1", 0, 4) === "PACK" && pack.readUInt32BE(4) === 2;
    if (!isPack) throw malformed();
    this.left = pack.readUInt32BE(8);
    if (this.left > bounds.objectsMax) {
      throw new RepositoryError("content", `The repository's latest commit holds more than ${bounds.objectsMax} files and folders.`);
    }
  }

  /** False at the end. */
  readNext(): boolean {
    const ready = this.ready.pop();
    if (ready !== undefined) {
      this.add(ready.offset, this.resolve(ready.base, ready.delta));
      return true;
    }
    if (this.left === 0) return false;
    this.left -= 1;
    const offset = this.at;
    const { type, size } = this.readHeader();
    const base = type === OFFSET_DELTA ? this.readBaseOffset(offset) : type === REFERENCE_DELTA ? this.readReference() : null;
    const bytes = this.inflate(size);
    if (base !== null) this.addDelta(base, { offset, delta: bytes });
    else if (type === 1 || type === 2 || type === 3 || type === 4) this.add(offset, { type: TYPES[type], bytes });
    else throw malformed();
    return true;
  }

  finish(): ReadonlyMap<string, GitObject> {
    // Every delta has its base, and only the pack's own hash follows the last object.
    if (this.waiting.size > 0 || this.at !== this.pack.length - TRAILER_BYTES) throw malformed();
    return this.objects;
  }

  private add(offset: number, object: GitObject): void {
    const id = idOf(object);
    this.objects.set(id, object);
    this.byOffset.set(offset, object);
    for (const key of [offset, id]) {
      for (const delta of this.waiting.get(key) ?? []) this.ready.push({ ...delta, base: object });
      this.waiting.delete(key);
    }
  }

  private addDelta(base: number | string, delta: WaitingDelta): void {
    const object = typeof base === "number" ? this.byOffset.get(base) : this.objects.get(base);
    const others = this.waiting.get(base);
    if (object !== undefined) this.add(delta.offset, this.resolve(object, delta.delta));
    else if (others !== undefined) others.push(delta);
    else this.waiting.set(base, [delta]);
  }

  private resolve({ type, bytes }: GitObject, delta: Buffer): GitObject {
    return { type, bytes: applyDelta(bytes, delta, (size) => this.count(size)) };
  }

  private readHeader(): { readonly type: number; readonly size: number } {
    const first = this.byte();
    const type = (first >> 4) & 7;
    const low = first & 15;
    if (first < 128) return { type, size: low };
    const { value, next } = readSize(this.pack, this.at);
    this.at = next;
    return { type, size: low + value * 16 };
  }

  /** Reads the distance to the base, a number whose every continuation adds one (gitformat-pack, "offset encoding"). */
  private readBaseOffset(offset: number): number {
    let byte = this.byte();
    let distance = byte & 127;
    while (byte >= 128) {
      byte = this.byte();
      distance = (distance + 1) * 128 + (byte & 127);
      if (distance > offset) throw malformed();
    }
    return offset - distance;
  }

  private readReference(): string {
    const id = this.pack.toString("hex", this.at, this.at + 20);
    this.at += 20;
    return id;
  }

  private byte(): number {
    const byte = this.pack[this.at];
    if (byte === undefined) throw malformed();
    this.at += 1;
    return byte;
  }

  private inflate(size: number): Buffer {
    this.count(size);
    const options = {
      info: true,
      // Unpacks no more than the declared size.
      maxOutputLength: Math.max(1, size),
      chunkSize: Math.min(CHUNK_BYTES_MAX, Math.max(CHUNK_BYTES_MIN, size + 1)),
    };
    try {
      const { buffer, engine } = inflateSync(this.pack.subarray(this.at), options) as unknown as {
        readonly buffer: Buffer;
        readonly engine: { readonly bytesWritten: number };
      };
      if (buffer.length !== size) throw malformed();
      this.at += engine.bytesWritten;
      return buffer;
    } catch (error) {
      throw error instanceof RepositoryError ? error : malformed(error);
    }
  }

  private count(bytes: number): void {
    if (bytes > this.bounds.objectBytesMax) {
      throw new RepositoryError("content", `The repository's latest commit holds a file of more than ${this.bounds.objectBytesMax} bytes.`);
    }
    this.unpackedBytes += bytes;
    if (this.unpackedBytes > this.bounds.unpackedBytesMax) {
      throw new RepositoryError("content", `The repository's latest commit holds more than ${this.bounds.unpackedBytesMax} bytes.`);
    }
  }
}

function idOf({ type, bytes }: GitObject): string {
  return createHash("sha1").update(`${type} ${bytes.length}\0`).update(bytes).digest("hex");
}

function malformed(cause?: unknown): RepositoryError {
  return new RepositoryError("host", "The repository's host sends a pack that is not well-formed.", cause);
}
