/** A possible member of one indexed set at a time. */
export interface Indexed {
  /** -1 outside of a set. Written by the set only. */
  setIndex: number;
}

/**
 * An unordered set of objects that every request enters and leaves. A growing and shrinking Set leaves old tables that link to newer ones,
 * and so keeps former members alive (docs/decisions/garbage.md).
 */
export class IndexedSet<Member extends Indexed> {
  private readonly members: Member[] = [];

  get size(): number {
    return this.members.length;
  }

  /** Does nothing for a member. */
  add(member: Member): void {
    if (member.setIndex !== -1) return;
    member.setIndex = this.members.length;
    this.members.push(member);
  }

  /** Does nothing for others. */
  delete(member: Member): void {
    const place = member.setIndex;
    if (place === -1) return;
    member.setIndex = -1;
    const last = this.members.pop();
    if (last === undefined || last === member) return;
    this.members[place] = last;
    last.setIndex = place;
  }

  /** A snapshot, unaffected by later changes. */
  all(): readonly Member[] {
    return [...this.members];
  }
}
