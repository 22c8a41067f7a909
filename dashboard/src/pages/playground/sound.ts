/** Sounds and pictures that came as base64, as addresses that the browser can play and save. */
import { useEffect, useState } from "react";

export function toBytes(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

/** The address of a blob for as long as it is shown. */
export function useObjectUrl(blob: Blob | null): string | null {
  const [url, setUrl] = useState<string | null>(null);
  useEffect(() => {
    if (!blob) return setUrl(null);
    const made = URL.createObjectURL(blob);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [blob]);
  return url;
}

/**
 * A sound that is played while it comes, where the browser can; otherwise, and when what came cannot be played that way, it is played once
 * it is whole.
 */
export class GrowingSound {
  readonly #parts: Uint8Array<ArrayBuffer>[] = [];
  readonly #source: MediaSource | null;
  #buffer: SourceBuffer | null = null;
  #next = 0;
  #isWhole = false;
  /** Of the element that plays it; null: wait for the whole. */
  readonly url: string | null;

  constructor(private readonly contentType: string) {
    const canGrow = typeof MediaSource !== "undefined" && MediaSource.isTypeSupported(contentType);
    this.#source = canGrow ? new MediaSource() : null;
    this.url = this.#source ? URL.createObjectURL(this.#source) : null;
    this.#source?.addEventListener("sourceopen", () => {
      if (!this.#source || this.#buffer) return;
      this.#buffer = this.#source.addSourceBuffer(contentType);
      this.#buffer.addEventListener("updateend", () => this.#feed());
      this.#feed();
    });
  }

  append(bytes: Uint8Array<ArrayBuffer>): void {
    this.#parts.push(bytes);
    this.#feed();
  }

  end(): Blob {
    this.#isWhole = true;
    this.#feed();
    return new Blob(this.#parts, { type: this.contentType });
  }

  close(): void {
    if (this.url !== null) URL.revokeObjectURL(this.url);
  }

  #feed(): void {
    if (!this.#buffer || this.#buffer.updating || this.#source?.readyState !== "open") return;
    const part = this.#parts[this.#next];
    try {
      if (part) {
        this.#next += 1;
        this.#buffer.appendBuffer(part);
      } else if (this.#isWhole) this.#source.endOfStream();
    } catch {
      // The element tells by its own error that this cannot be played; the whole is offered in any case.
    }
  }
}
