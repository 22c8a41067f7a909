/** The commands and options of the command line. */
import { randomUUID } from "node:crypto";
import { type ParseArgsConfig, parseArgs } from "node:util";

export const HELP = `Usage: npm run sluice -- <command>

  account list [--search <text>] [--limit <number>]   accounts, newest first; 20 unless said
  account show <account>
  account create <e-mail address> [--name <text>]     prints a password to sign in with, once
  account tier <account> <tier>                       gives the tier's credits at once
  account tier <account> --none                       ends refills; what is left lapses at the next boundary
  credits grant <account> <credits> [--bucket pack|crypto|tier] [--note <text>] [--grant-id <uuid>]
                                                      to the pack unless said; once for each grant id
  publisher allow <account>                           may publish community models and agents
  publisher deny <account>
  operator allow <account>                            may do all of this, and sees the dashboard's page of operators
  operator deny <account>                             all but the last one
  books refused                                       charges that the database refuses, of the process that answers
  books retry                                         tries them once more, and lists what is still refused
  owner key [--revoke-others]                         prints one more key of the owner's account; asks the database, not the gateway
                                                      --revoke-others ends the owner's other keys, and all that were made with them
  key generate                                        prints a well-formed secret key for OWNER_API_KEY; asks nobody
  help

<account> is an id, a handle or an e-mail address. --json prints what was answered as JSON.

Environment, and .env in the working directory:
             SLUICE_URL   where the gateway is; http://localhost:<PORT> unless said
             SLUICE_KEY   an operator's secret key with the permission keys (SLUICE_API_KEY is read too); else OWNER_API_KEY
             owner key    reads what the gateway reads: DATABASE_URL, DATA_DIR, ENCRYPTION_KEY, ...

Exit codes:  0 done   1 refused, or no gateway answered   2 not a command`;

export const BUCKETS = ["pack", "crypto", "tier"] as const;
export type Bucket = (typeof BUCKETS)[number];

export type Command =
  | { readonly name: "help" }
  | { readonly name: "account list"; readonly search: string | null; readonly limit: number }
  | { readonly name: "account show"; readonly account: string }
  | { readonly name: "account create"; readonly email: string; readonly fullName: string | null }
  | { readonly name: "account tier"; readonly account: string; readonly tier: string | null }
  | {
      readonly name: "credits grant";
      readonly account: string;
      /** A decimal. */
      readonly credits: string;
      readonly bucket: Bucket;
      readonly note: string | null;
      readonly grantId: string;
    }
  | { readonly name: "publisher"; readonly account: string; readonly allowed: boolean }
  | { readonly name: "operator"; readonly account: string; readonly allowed: boolean }
  | { readonly name: "books refused" }
  | { readonly name: "books retry" }
  | { readonly name: "owner key"; readonly revokesOthers: boolean }
  | { readonly name: "key generate" };

export interface CommandLine {
  readonly command: Command;
  readonly isJson: boolean;
}

/** An invalid command line, with a message that points to the help. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

const LIMIT_DEFAULT = 20;
const LIMIT_MAX = 10_000;
const UUID_PATTERN = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

type Options = NonNullable<ParseArgsConfig["options"]>;
type Values = Readonly<Record<string, string | boolean | undefined>>;

interface Form {
  readonly options: Options;
  /** The positional arguments that must be there, by name. */
  readonly takes: (values: Values) => readonly string[];
  readonly read: (values: Values, given: readonly string[]) => Command;
}

const FORMS: Readonly<Record<string, Form>> = {
  "account list": {
    options: { search: { type: "string" }, limit: { type: "string" } },
    takes: () => [],
    read: ({ search, limit }) => ({ name: "account list", search: text(search), limit: toLimit(text(limit)) }),
  },
  "account show": {
    options: {},
    takes: () => ["account"],
    read: (_, [account = ""]) => ({ name: "account show", account }),
  },
  "account create": {
    options: { name: { type: "string" } },
    takes: () => ["e-mail address"],
    read: ({ name }, [email = ""]) => ({ name: "account create", email, fullName: text(name) }),
  },
  "account tier": {
    options: { none: { type: "boolean" } },
    takes: ({ none }) => (none ? ["account"] : ["account", "tier"]),
    read: (_, [account = "", tier = null]) => ({ name: "account tier", account, tier }),
  },
  "credits grant": {
    options: { bucket: { type: "string" }, note: { type: "string" }, "grant-id": { type: "string" } },
    takes: () => ["account", "credits"],
    read: (values, [account = "", credits = ""]) => ({
      name: "credits grant",
      account,
      credits: toCredits(credits),
      bucket: toBucket(text(values.bucket)),
      note: text(values.note),
      grantId: toGrantId(text(values["grant-id"])),
    }),
  },
  "publisher allow": {
    options: {},
    takes: () => ["account"],
    read: (_, [account = ""]) => ({ name: "publisher", account, allowed: true }),
  },
  "publisher deny": {
    options: {},
    takes: () => ["account"],
    read: (_, [account = ""]) => ({ name: "publisher", account, allowed: false }),
  },
  "operator allow": {
    options: {},
    takes: () => ["account"],
    read: (_, [account = ""]) => ({ name: "operator", account, allowed: true }),
  },
  "operator deny": {
    options: {},
    takes: () => ["account"],
    read: (_, [account = ""]) => ({ name: "operator", account, allowed: false }),
  },
  "books refused": { options: {}, takes: () => [], read: () => ({ name: "books refused" }) },
  "books retry": { options: {}, takes: () => [], read: () => ({ name: "books retry" }) },
  "owner key": {
    options: { "revoke-others": { type: "boolean" } },
    takes: () => [],
    read: (values) => ({ name: "owner key", revokesOthers: values["revoke-others"] === true }),
  },
  "key generate": { options: {}, takes: () => [], read: () => ({ name: "key generate" }) },
};

/** Throws a UsageError. */
export function readCommandLine(args: readonly string[]): CommandLine {
  if (args.length === 0 || args[0] === "help" || args.includes("--help") || args.includes("-h")) {
    return { command: { name: "help" }, isJson: false };
  }
  const name = args.slice(0, 2).join(" ");
  const form = Object.hasOwn(FORMS, name) ? FORMS[name] : undefined;
  if (!form) throw new UsageError(`There is no command ${JSON.stringify(name)}.`);
  const { values, positionals } = parse(args.slice(2), { ...form.options, json: { type: "boolean" } });
  const takes = form.takes(values);
  const missing = takes.slice(positionals.length);
  if (missing.length > 0) throw new UsageError(`${name} needs ${missing.map((each) => `<${each}>`).join(" and ")}.`);
  if (positionals.length > takes.length) throw new UsageError(`${name} does not take ${JSON.stringify(positionals[takes.length])}.`);
  if (positionals.includes("")) throw new UsageError(`${name} does not take an empty argument.`);
  return { command: form.read(values, positionals), isJson: values.json === true };
}

function parse(args: string[], options: Options): { values: Values; positionals: string[] } {
  try {
    const { values, positionals } = parseArgs({ args, options, allowPositionals: true, strict: true });
    return { values: values as Values, positionals };
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function text(value: string | boolean | undefined): string | null {
  return typeof value === "string" ? value : null;
}

function toLimit(value: string | null): number {
  if (value === null) return LIMIT_DEFAULT;
  const limit = /^\d{1,6}$/.test(value) ? Number(value) : 0;
  if (limit < 1 || limit > LIMIT_MAX) throw new UsageError(`--limit takes a whole number from 1 to ${LIMIT_MAX}.`);
  return limit;
}

function toCredits(value: string): string {
  if (!/^\d{1,12}(?:\.\d{1,9})?$/.test(value) || Number(value) === 0) {
    throw new UsageError("<credits> is a decimal above 0 with at most 9 decimal places, such as 25 or 0.5.");
  }
  return value;
}

function toBucket(value: string | null): Bucket {
  const bucket = BUCKETS.find((each) => each === (value ?? "pack"));
  if (!bucket) throw new UsageError(`--bucket is one of ${BUCKETS.join(", ")}.`);
  return bucket;
}

function toGrantId(value: string | null): string {
  if (value !== null && !UUID_PATTERN.test(value)) throw new UsageError("--grant-id takes a UUID.");
  return value ?? randomUUID();
}

export function isId(account: string): boolean {
  return UUID_PATTERN.test(account);
}
