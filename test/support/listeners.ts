/** Listeners of a gateway's events: a test that changes something waits until there is one. */
import { vi } from "vitest";
import type { EventChannel, Events } from "../../src/store/events.js";

/** Counts from now on. Returns a function that answers how many listeners a channel has at the moment. */
export function countListeners(events: Events): (channel: EventChannel) => number {
  const counts = new Map<EventChannel, number>();
  const add = (channel: EventChannel, change: number) => counts.set(channel, (counts.get(channel) ?? 0) + change);
  const listen = events.listen.bind(events);
  vi.spyOn(events, "listen").mockImplementation((channel, listener) => {
    const stop = listen(channel, listener);
    add(channel, 1);
    return () => {
      stop();
      add(channel, -1);
    };
  });
  return (channel) => counts.get(channel) ?? 0;
}
