/** What can be counted on the text of the sources: files, circles, and the places where a thing is done that should be done once. */
import { circlesOf, groupBy, importsOf, type Sources } from "../../test/support/imports.js";

const SMALL_LINES = 40;

export interface Shape {
  readonly files: number;
  readonly small: number;
  /** Small files that one file imports. */
  readonly smallWithOneImporter: number;
  readonly inServices: number;
  readonly inSource: number;
  /** Files that import each other in a circle, types included. */
  readonly fileCircles: readonly (readonly string[])[];
  /** Domains of the services that do. */
  readonly domainCircles: readonly (readonly string[])[];
  readonly chargePlaces: readonly string[];
  readonly statusTables: readonly string[];
  readonly contextBuilders: readonly string[];
}

/** Opens, settles or releases a charge. */
const CHARGE = /\b(?:credits|\w*charge)\??\.(?:open|settle|release)\(/gi;
/** A table that says a number for each code of an error. */
const STATUS_TABLE = /\bRecord<ErrorCode, (?:number\b|\{[^}]*\bstatus: number\b)/g;
/** Makes a request's context from its parts. */
const CONTEXT =
  /\bimplements RequestContext\b|\b(?:const|let) \w+: RequestContext = \{|\breturn \{[^}]*\brequestId\b[^}]*\bclientAddress\b/g;

export function measureShape(sources: Sources): Shape {
  const imports = importsOf(sources);
  const importers = new Map<string, number>();
  for (const targets of imports.values()) for (const target of targets) importers.set(target, (importers.get(target) ?? 0) + 1);
  const small = [...sources].filter(([, text]) => text.trimEnd().split("\n").length < SMALL_LINES).map(([file]) => file);
  const files = [...sources.keys()];
  const isCharging = (file: string) => file.startsWith("src/services/") && domainOf(file) !== "credits";
  return {
    files: files.length,
    small: small.length,
    smallWithOneImporter: small.filter((file) => importers.get(file) === 1).length,
    inServices: files.filter((file) => /^src\/services\/[^/]+$/.test(file)).length,
    inSource: files.filter((file) => /^src\/[^/]+$/.test(file)).length,
    fileCircles: circlesOf(imports),
    domainCircles: circlesOf(groupBy(imports, domainOf)),
    chargePlaces: files.filter((file) => isCharging(file) && sources.get(file)?.match(CHARGE)),
    statusTables: placesOf(sources, STATUS_TABLE),
    contextBuilders: placesOf(sources, CONTEXT),
  };
}

/** The folder below services; what lies beside the folders puts them together. */
export function domainOf(file: string): string | null {
  return /^src\/services\/([^/]+)\//.exec(file)?.[1] ?? null;
}

/** The file once for each match of the pattern. */
function placesOf(sources: Sources, pattern: RegExp): string[] {
  return [...sources].flatMap(([file, text]) => (text.match(pattern) ?? []).map(() => file));
}
