/**
 * Growing text, split into Markdown blocks at blank lines outside code fences. Complete blocks never change, so only the end of a long answer
 * is parsed and rendered again.
 */
export class GrowingText {
  #blocks: readonly string[] = [];
  #tail = "";
  /** Position in the tail up to which lines have been scanned. */
  #seen = 0;
  #fence: string | null = null;
  #length = 0;

  get blocks(): readonly string[] {
    return this.#blocks;
  }

  get tail(): string {
    return this.#tail;
  }

  get length(): number {
    return this.#length;
  }

  get text(): string {
    return this.#blocks.join("") + this.#tail;
  }

  append(piece: string): void {
    this.#length += piece.length;
    this.#tail += piece;
    const complete: string[] = [];
    for (let end = this.#tail.indexOf("\n", this.#seen); end !== -1; end = this.#tail.indexOf("\n", this.#seen)) {
      const line = this.#tail.slice(this.#seen, end);
      this.#seen = end + 1;
      this.#turnFence(line);
      if (this.#fence !== null || line.trim() !== "") continue;
      complete.push(this.#tail.slice(0, this.#seen));
      this.#tail = this.#tail.slice(this.#seen);
      this.#seen = 0;
    }
    if (complete.length > 0) this.#blocks = [...this.#blocks, ...complete];
  }

  #turnFence(line: string): void {
    const [, mark = ""] = /^ {0,3}(`{3,}|~{3,})/.exec(line) ?? [];
    if (mark === "") return;
    if (this.#fence === null) this.#fence = mark;
    else if (mark.startsWith(this.#fence) && line.trim() === mark) this.#fence = null;
  }
}

export function blocksOf(text: string): readonly string[] {
  const growing = new GrowingText();
  growing.append(text);
  return growing.tail === "" ? growing.blocks : [...growing.blocks, growing.tail];
}
