/** A possible member of a roster; of one roster at a time. */
export interface Listed {
  /** Its index; -1 while it is on none. Written by the roster only. */
  rosterPlace: number;
}

/**
 * An unordered set of objects that every request enters and leaves. A growing and shrinking Set leaves old tables that link to newer ones,
 * and so keeps former members alive (docs/decisions/garbage.md).
 */
export class Roster<Member extends Listed> {
  private readonly members: Member[] = [];

  get size(): number {
    return this.members.length;
  }

  /** Does nothing for a member. */
  add(member: Member): void {
    if (member.rosterPlace !== -1) return;
    member.rosterPlace = this.members.length;
    this.members.push(member);
  }

  /** Does nothing for others. */
  delete(member: Member): void {
    const place = member.rosterPlace;
    if (place === -1) return;
    member.rosterPlace = -1;
    const last = this.members.pop();
    if (last === undefined || last === member) return;
    this.members[place] = last;
    last.rosterPlace = place;
  }

  /** A snapshot, unaffected by later changes. */
  all(): readonly Member[] {
    return [...this.members];
  }
}
