/** What OpenAI's own types say of realtime events: read from the package, so that an event that is new there is noticed here. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const FILES = ["realtime/realtime.d.ts", "beta/realtime/realtime.d.ts"];
const SERVER_UNIONS = ["RealtimeServerEvent", "RealtimeTranslationServerEvent"];
const CALLER_UNIONS = ["RealtimeClientEvent"];

export interface UsageReportingEvent {
  readonly type: string;
  /** The field whose value has the `usage`; empty for the event itself. */
  readonly path: readonly string[];
}

/** Every event of an upstream's with a field for usage, in itself or in a nested object. */
export function usageReportingEvents(): readonly UsageReportingEvent[] {
  const found = FILES.flatMap((file) => {
    const types = readTypes(file);
    return SERVER_UNIONS.flatMap((union) => types.membersOf(union)).flatMap((name): UsageReportingEvent[] => {
      const fields = types.fieldsOf(name);
      const holders = [...fields].filter(([, type]) => types.fieldsOf(type, name).has("usage")).map(([field]) => [field]);
      const paths = fields.has("usage") ? [[], ...holders] : holders;
      return paths.map((path) => ({ type: types.nameOf(name), path }));
    });
  });
  return [...new Map(found.map((event) => [JSON.stringify(event), event])).values()];
}

/** The `type` of every event that a caller may send. */
export function callerEventNames(): readonly string[] {
  const names = FILES.flatMap((file) => {
    const types = readTypes(file);
    return CALLER_UNIONS.flatMap((union) => types.membersOf(union)).map((name) => types.nameOf(name));
  });
  return [...new Set(names)];
}

/** The declarations as the package prints them: one to a line, four spaces for each level. */
function readTypes(file: string) {
  const path = join(dirname(createRequire(import.meta.url).resolve("openai")), "resources", file);
  const interfaces = new Map<string, Map<string, string>>();
  const unions = new Map<string, readonly string[]>();
  const scopes: string[] = [];
  for (const line of readFileSync(path, "utf8").split("\n")) {
    const level = /^ */.exec(line)?.[0].length ?? 0;
    const [, union, members] = /^export type (\w+) = (.+);$/.exec(line) ?? [];
    if (union && members) unions.set(union, members.split(" | "));
    const [, kind, opened] = /^ *(?:export )?(?:declare )?(interface|namespace) (\w+).*\{$/.exec(line) ?? [];
    const [, field, type] = /^ *(\w+)\??: (.+);$/.exec(line) ?? [];
    if (opened) {
      scopes.length = level / 4;
      scopes.push(opened);
      if (kind === "interface") interfaces.set(scopes.join("."), new Map());
    } else if (field && type) {
      interfaces.get(scopes.slice(0, level / 4).join("."))?.set(field, type);
    }
  }
  /** The fields of an interface, which may be named as its neighbour sees it, and how their types are written. */
  const fieldsOf = (name: string, from = ""): ReadonlyMap<string, string> =>
    interfaces.get(name) ?? interfaces.get(`${from}.${name}`) ?? new Map();
  return {
    membersOf: (union: string) => unions.get(union) ?? [],
    fieldsOf,
    nameOf: (name: string) => (fieldsOf(name).get("type") ?? "").replaceAll("'", ""),
  };
}
