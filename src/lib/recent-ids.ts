/** Ids that have been seen, of which the oldest are forgotten. */
export class RecentIds {
  private readonly ids = new Set<string>();

  constructor(private readonly max: number) {}

  has(id: string): boolean {
    return this.ids.has(id);
  }

  /** False when it has been seen. */
  add(id: string): boolean {
    if (this.ids.has(id)) return false;
    this.ids.add(id);
    if (this.ids.size > this.max) {
      const [oldest = id] = this.ids;
      this.ids.delete(oldest);
    }
    return true;
  }
}
