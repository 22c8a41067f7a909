/** What the development broker connects: three names and nothing behind them (docs/spec/connected-apps.md#broker). */
import type { Toolkit } from "./broker.js";

export const DEVELOPMENT_TOOLKITS: readonly Toolkit[] = [
  { slug: "notes", name: "Notes", description: "Reads and writes short texts. For development: there are no notes behind it.", logo: null },
  { slug: "mail", name: "Mail", description: "Reads and sends messages. For development: there is no mailbox behind it.", logo: null },
  {
    slug: "calendar",
    name: "Calendar",
    description: "Reads and makes appointments. For development: there is no calendar behind it.",
    logo: null,
  },
];

/** Those in which every word of the search occurs. */
export function findDevelopmentToolkits(search: string): readonly Toolkit[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return DEVELOPMENT_TOOLKITS.filter(({ slug, name, description }) => {
    const text = `${slug} ${name} ${description}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** A connection may be older than this list. */
export function developmentToolkitOf(slug: string): Toolkit {
  return DEVELOPMENT_TOOLKITS.find((toolkit) => toolkit.slug === slug) ?? { slug, name: slug, description: "", logo: null };
}
