/** Days as the books have them: those of UTC. */
export const DAY_MS = 86_400_000;

/** Where the day so many days ago begins. It stays the same all day, and so does a question that is asked with it. */
export function daysAgo(days: number): Date {
  return new Date((Math.floor(Date.now() / DAY_MS) - days) * DAY_MS);
}
