import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Indexed, IndexedSet } from "../../src/fast/indexed-set.js";

class Member implements Indexed {
  setIndex = -1;

  constructor(readonly name: number) {}
}

describe("an indexed set", () => {
  it("holds the same members as a Set, through any additions and removals", () => {
    const steps = fc.array(fc.tuple(fc.nat({ max: 9 }), fc.boolean()), { maxLength: 60 });

    fc.assert(
      fc.property(steps, (moves) => {
        const members = Array.from({ length: 10 }, (_, name) => new Member(name));
        const indexed = new IndexedSet<Member>();
        const set = new Set<Member>();
        for (const [name, comes] of moves) {
          const member = members[name] as Member;
          if (comes) {
            indexed.add(member);
            set.add(member);
          } else {
            indexed.delete(member);
            set.delete(member);
          }
          expect(indexed.size).toBe(set.size);
          expect(new Set(indexed.all())).toEqual(set);
        }
      }),
    );
  });

  it("can be iterated while members are removed", () => {
    const indexed = new IndexedSet<Member>();
    for (let name = 0; name < 5; name += 1) indexed.add(new Member(name));

    const seen = indexed.all().map((member) => {
      indexed.delete(member);
      return member.name;
    });

    expect(seen).toEqual([0, 1, 2, 3, 4]);
    expect(indexed.size).toBe(0);
  });
});
