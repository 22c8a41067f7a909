/** How attempts to sign in are slowed down: turns, and the number of attempts that wait for them. */
import { describe, expect, it } from "vitest";
import { AppError } from "../../../src/errors.js";
import { SignInLimits } from "../../../src/services/sessions/sign-in-limits.js";
import { MemoryCounters } from "../../../src/store/counters.js";
import { createMovableClock } from "../../support/clock.js";

const ATTEMPTS_PER_MINUTE = 3;
const PACE = { addressTurnMs: 5_000, emailTurnMs: 15_000, waitingPerAddressMax: 2 } as const;
const EMAIL = "ada@example.com";

function from(host: number, signal = new AbortController().signal) {
  return { clientAddress: `203.0.113.${host}`, signal };
}

async function codeOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => "let in",
    (error: unknown) => (error instanceof AppError ? error.code : String(error)),
  );
}

/** Every wait is over at once, and has taken its time. */
function quickLimits() {
  const clock = createMovableClock();
  const waits: number[] = [];
  const limits = new SignInLimits(new MemoryCounters(clock), ATTEMPTS_PER_MINUTE, PACE, async (ms) => {
    waits.push(ms);
    clock.advance(ms / 1000);
  });
  return { limits, waits };
}

/** No wait is over before `release`; later ones are over at once. */
function heldLimits() {
  const clock = createMovableClock();
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const sleep = async (ms: number) => {
    await released;
    clock.advance(ms / 1000);
  };
  return { limits: new SignInLimits(new MemoryCounters(clock), ATTEMPTS_PER_MINUTE, PACE, sleep), release };
}

/** The attempts that a client address has for nothing, each for another e-mail address, and its first turn. */
async function useUp(limits: SignInLimits, host: number): Promise<void> {
  for (let n = 0; n <= ATTEMPTS_PER_MINUTE; n += 1) await limits.countSignIn(from(host), `${host}-${n}@example.com`);
}

describe("attempts to sign in", () => {
  it("take a turn every five seconds when their address makes too many", async () => {
    const { limits, waits } = quickLimits();
    await useUp(limits, 1);
    expect(waits).toEqual([]);

    await limits.countSignIn(from(1), "b@example.com");
    await limits.countSignIn(from(1), "c@example.com");

    expect(waits).toEqual([PACE.addressTurnMs, PACE.addressTurnMs]);
  });

  it("for one e-mail address leave each client address a turn of its own, however many others try", async () => {
    const { limits, waits } = quickLimits();
    for (let host = 1; host <= 100; host += 1) await limits.countSignIn(from(host), EMAIL);

    await limits.countSignIn(from(200), EMAIL);
    expect(waits).toEqual([]);

    await limits.countSignIn(from(200), EMAIL);
    expect(waits).toEqual([PACE.emailTurnMs]);
  });

  it("are slowed down for the e-mail address that is tried, and for no other", async () => {
    const { limits, waits } = quickLimits();
    for (let host = 1; host <= 100; host += 1) await limits.countSignIn(from(host), EMAIL);
    await limits.countSignIn(from(100), EMAIL);
    expect(waits).toEqual([PACE.emailTurnMs]);

    await limits.countSignIn(from(100), "b@example.com");

    expect(waits).toHaveLength(1);
  });

  it(`wait ${PACE.waitingPerAddressMax} at once for an address, and not one more`, async () => {
    const { limits, release } = heldLimits();
    await useUp(limits, 1);
    const waiting = ["b", "c"].map((name) => codeOf(limits.countSignIn(from(1), `${name}@example.com`)));

    expect(await codeOf(limits.countSignIn(from(1), "d@example.com"))).toBe("RATE_LIMITED");
    expect(await codeOf(limits.countSignIn(from(2), "d@example.com"))).toBe("let in");

    release();
    expect(await Promise.all(waiting)).toEqual(["let in", "let in"]);
    expect(await codeOf(limits.countSignIn(from(1), "e@example.com"))).toBe("let in");
  });

  it("give their place back when the caller leaves", async () => {
    const limits = new SignInLimits(new MemoryCounters(createMovableClock()), ATTEMPTS_PER_MINUTE, { ...PACE, waitingPerAddressMax: 1 });
    await useUp(limits, 1);

    for (const name of ["b", "c"]) {
      const caller = new AbortController();
      const left = codeOf(limits.countSignIn(from(1, caller.signal), `${name}@example.com`));
      expect(await codeOf(limits.countSignIn(from(1), "d@example.com"))).toBe("RATE_LIMITED");
      caller.abort("left");
      expect(await left).toBe("left");
    }
  });

  it("are refused when others of their address overtake them again and again", async () => {
    const waits: number[] = [];
    const limits = new SignInLimits(new MemoryCounters(createMovableClock()), ATTEMPTS_PER_MINUTE, PACE, async (ms) => {
      waits.push(ms);
    });
    await useUp(limits, 1);

    expect(await codeOf(limits.countSignIn(from(1), "b@example.com"))).toBe("RATE_LIMITED");
    expect(waits).toEqual([PACE.addressTurnMs, PACE.addressTurnMs, PACE.addressTurnMs]);
  });
});
