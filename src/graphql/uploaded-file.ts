/** A file as it reaches a resolver, and where it may not go. */

/** Its bytes are no property, so that nothing which walks through variables walks through them. */
export class UploadedFile {
  readonly #bytes: Uint8Array;

  constructor(
    /** As the caller says: checked by nobody yet. */
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
