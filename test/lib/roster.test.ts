import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Listed, Roster } from "../../src/lib/roster.js";

class Member implements Listed {
  rosterPlace = -1;

  constructor(readonly name: number) {}
}

describe("a connection set", () => {
  it("holds the same members as a Set, through any additions and removals", () => {
    const steps = fc.array(fc.tuple(fc.nat({ max: 9 }), fc.boolean()), { maxLength: 60 });

    fc.assert(
      fc.property(steps, (moves) => {
        const members = Array.from({ length: 10 }, (_, name) => new Member(name));
        const roster = new Roster<Member>();
        const set = new Set<Member>();
        for (const [name, comes] of moves) {
          const member = members[name] as Member;
          if (comes) {
            roster.add(member);
            set.add(member);
          } else {
            roster.delete(member);
            set.delete(member);
          }
          expect(roster.size).toBe(set.size);
          expect(new Set(roster.all())).toEqual(set);
        }
      }),
    );
  });

  it("can be iterated while members are removed", () => {
    const roster = new Roster<Member>();
    for (let name = 0; name < 5; name += 1) roster.add(new Member(name));

    const seen = roster.all().map((member) => {
      roster.delete(member);
      return member.name;
    });

    expect(seen).toEqual([0, 1, 2, 3, 4]);
    expect(roster.size).toBe(0);
  });
});
