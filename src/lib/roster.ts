/** What may be on a roster; of one alone at a time. */
export interface Listed {
  /** Where on it; -1 while it is on none. The roster's own. */
  rosterPlace: number;
}

/**
 * What is there at the moment, in no order: for what every request enters and leaves. A Set would do, but the tables that it leaves behind
 * as it grows and shrinks know the next one each, and keep what was in it beyond its time (docs/decisions/garbage.md).
 */
export class Roster<Member extends Listed> {
  private readonly members: Member[] = [];

  get size(): number {
    return this.members.length;
  }

  /** Does nothing when it is there. */
  add(member: Member): void {
    if (member.rosterPlace !== -1) return;
    member.rosterPlace = this.members.length;
    this.members.push(member);
  }

  /** Does nothing when it is not there. */
  delete(member: Member): void {
    const place = member.rosterPlace;
    if (place === -1) return;
    member.rosterPlace = -1;
    const last = this.members.pop();
    if (last === undefined || last === member) return;
    this.members[place] = last;
    last.rosterPlace = place;
  }

  /** Those that are there now, whoever comes or leaves meanwhile. */
  all(): readonly Member[] {
    return [...this.members];
  }
}
